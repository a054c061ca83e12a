// How the bits of a register are shown.

/** The bits of a lane as its type means them. */
export function shown(bits: number | bigint, type: string): string {
  const size = Number(type.replace(/\D/g, "")) || 1;
  if (type === "pred") return bits ? "true" : "false";
  if (type.startsWith("f") && size === 32) return float(new Float32Array(Uint32Array.of(Number(bits)).buffer)[0]!);
  if (type.startsWith("f") && size === 64) return float(new Float64Array(BigUint64Array.of(BigInt(bits)).buffer)[0]!);
  if (type.startsWith("s")) return BigInt.asIntN(size, BigInt(bits)).toString();
  if (size === 64 && BigInt(bits) > 0xffffffffn) return "0x" + BigInt(bits).toString(16);
  return bits.toString();
}

function float(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return value.toFixed(0);
  return Number.isFinite(value) ? String(Number(value.toPrecision(4))) : String(value);
}

/** At most so many characters: the first of a truth value, the end of what is longer. */
export function short(text: string, most: number): string {
  if (text.length > most && (text === "true" || text === "false")) return text[0]!.toUpperCase();
  return text.length > most ? "…" + text.slice(1 - most) : text;
}

/** An element of an array of that type: integers in full, other numbers to four digits. */
export function elementShown(value: number | bigint, type: string): string {
  return typeof value === "bigint" || !type.startsWith("float") ? value.toString() : float(value);
}
