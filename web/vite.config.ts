// One page, with everything in it: no request goes out, from a server or from a file.
import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: {
    outDir: "../src/warploom/ui/static",
    emptyOutDir: true,
    target: "es2022",
    reportCompressedSize: false,
  },
});
