// Not a test: traces the example programs, makes their pages and takes pictures of them.
// Arguments: hither, the folder of the programs, the folder for the pictures.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { browser, open, settled } from "./open.mjs";

const [hither, programs, pictures] = process.argv.slice(2).map((path) => resolve(path));
const MACHINE = "xeon-x7550x4";
const RUNS = {
  ondes: ["ondes", "112", "24"],
  "ondes-parallel": ["ondes", "-p", "112", "24"],
  is: ["is", "dynamic", "20", "6"],
  "is-split": ["is", "static", "20", "6"],
  stencil2d: ["stencil2d", "1024", "60"],
  pairs: ["pairs", "8", "2", "30000", "512"],
};
const LOOKS = { wide: {}, dark: { theme: "dark" }, phone: { width: 390, touch: true } };

mkdirSync(pictures, { recursive: true });
const env = { ...process.env, OMP_NUM_THREADS: "8" };
const run = (...args) => execFileSync(hither, args, { env, stdio: ["ignore", "ignore", "pipe"] });

for (const [name, [program, ...args]] of Object.entries(RUNS)) {
  const at = (suffix) => `${pictures}/${name}${suffix}`;
  run("trace", "-o", at(".hither"), "--", `${programs}/${program}`, ...args);
  execFileSync("rm", ["-f", at(".place.json")]);
  run("map", at(".hither"), "--topology", MACHINE, "-o", at(".place.json"));
  run("report", at(".hither"), "-p", at(".place.json"), "-o", at(".html"));
  for (const [look, options] of Object.entries(LOOKS)) {
    const page = await open({ ...options, path: at(".html") });
    await settled(page);
    await page.screenshot({ path: at(`-${look}.png`), fullPage: true });
    await page.context().close();
  }
  console.log(at(".html"));
}
await browser.close();
