// Vite turns imports of style sheets into styles of the page.
declare module "*.css";
