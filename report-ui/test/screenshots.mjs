// Not a test: traces the example programs and two that are not ours, makes their pages and
// takes pictures of them.
// Arguments: hither, the folder of the programs, the folder for the pictures, and names of
// runs to keep. The pictures of the README are those of `zstd`.
import { execFileSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { resolve } from "node:path";
import { browser, open, settled } from "./open.mjs";

const [hither, programs, pictures] = process.argv.slice(2, 5).map((path) => resolve(path));
const wanted = process.argv.slice(5);
const MACHINE = "xeon-x7550x4";
const ours = (program, ...args) => [`${programs}/${program}`, ...args];
const ranks = ["mpirun", "-n", "4", "--oversubscribe", "--allow-run-as-root"];
const RUNS = {
  ondes: { command: ours("ondes", "112", "24") },
  "ondes-parallel": { command: ours("ondes", "-p", "112", "24"), before: "ondes" },
  is: { command: ours("is", "dynamic", "20", "6") },
  "is-static": { command: ours("is", "static", "20", "6") },
  "is-cyclic": { command: ours("is", "cyclic", "20", "6"), before: "is-static" },
  stencil2d: { command: ours("stencil2d", "1024", "60") },
  pairs: { command: ours("pairs", "8", "2", "30000", "512") },
  "mpi-ring": { command: [...ranks, ...ours("mpi_ring")] },
  hpcc: { command: [...ranks, "hpcc"], prepare: hpcc },
  zstd: { command: ["zstd", "-T4", "-9", "-q", "-f", "log.txt", "-o", "log.zst"], prepare: log },
};
const LOOKS = { wide: {}, dark: { theme: "dark" }, phone: { width: 390, touch: true } };

/// What hpcc reads, with a problem that ends within a minute.
function hpcc(folder) {
  const example = "/usr/share/doc/hpcc/examples/_hpccinf.txt";
  if (!existsSync(example)) return false;
  const lines = readFileSync(example, "latin1").split("\n");
  lines[5] = lines[5].replace(/^1000 /, "500 ");
  lines[7] = lines[7].replace(/^80/, "50");
  writeFileSync(`${folder}/hpccinf.txt`, lines.join("\n"), "latin1");
  return true;
}

/// Something to compress: 64 MiB of a log, the same every time.
function log(folder) {
  const words = "accept bind close connect denied error from get host info lost open port read retry send slow timeout user wait write".split(" ");
  let state = 1;
  const next = (below) => (state = (state * 48271) % 2147483647) % below;
  const file = openSync(`${folder}/log.txt`, "w");
  for (let block = 0; block < 1024; block++) {
    let text = "";
    while (text.length < 65536) text += `${1e9 + block * 977 + next(977)} ${words[next(words.length)]} ${words[next(words.length)]} ${next(1e6)} ${next(256)}\n`;
    writeSync(file, text);
  }
  closeSync(file);
  return true;
}

mkdirSync(pictures, { recursive: true });
const env = { ...process.env, OMP_NUM_THREADS: "8" };
const page = (name) => `${pictures}/${name}.html`;

function make(name, { command, prepare, before }) {
  const folder = `${pictures}/${name}`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  if (prepare && !prepare(folder)) return false;
  const run = (...args) => execFileSync(hither, args, { env, cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  run("trace", "-o", "app.hither", "--", ...command);
  run("map", "app.hither", "--topology", MACHINE, "-o", "app.place.json");
  run("report", "app.hither", "--topology", MACHINE, "-o", page(name));
  run("report", "app.hither", "-p", "app.place.json", "-o", page(`${name}-placed`));
  const old = `${pictures}/${before}/app.hither`;
  if (before && existsSync(old)) run("report", "app.hither", "--topology", MACHINE, "--before", old, "-o", page(`${name}-compared`));
  return true;
}

async function picture(name, look) {
  const shown = await open({ ...LOOKS[look], path: page(name) });
  await settled(shown);
  await shown.screenshot({ path: `${pictures}/${name}-${look}.png`, fullPage: true });
  await shown.context().close();
}

/// The head of a page, and the first structure that its findings name.
async function forReadme(name) {
  const shown = await open({ path: page(name), width: 1180, height: 900 });
  const first = shown.locator(".finding .link", { hasText: "Show its pages" }).first();
  await shown.screenshot({ path: `${pictures}/readme-report.png` });
  if (await first.count()) await first.click();
  await settled(shown);
  await shown.locator("#structure .figure").screenshot({ path: `${pictures}/readme-structure.png` });
  await shown.context().close();
}

for (const [name, run] of Object.entries(RUNS)) {
  if (wanted.length && !wanted.includes(name)) continue;
  if (!make(name, run)) {
    console.log(`${name}: not installed`);
    continue;
  }
  for (const shown of [name, `${name}-placed`, `${name}-compared`]) {
    if (!existsSync(page(shown))) continue;
    for (const look of Object.keys(LOOKS)) await picture(shown, look);
    console.log(page(shown));
  }
  if (name === "zstd") await forReadme(name);
}
await browser.close();
