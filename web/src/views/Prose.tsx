/** A text of a lesson; what stands between backticks is code. */
export function Prose({ text }: { text: string }) {
  return <>{text.split("`").map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}</>;
}
