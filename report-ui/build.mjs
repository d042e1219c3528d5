// Bundles src/ into dist/: report.js, report.css, and policy.txt, the content security policy
// with the hashes of both. `node build.mjs --check` says whether dist/ is current.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = ["chrome103", "firefox113", "safari16.4"];

// What the bundle contains of others.
const packages = new Set();

async function bundle(entry) {
  const made = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    target,
    format: "iife",
    charset: "ascii",
    legalComments: "none",
    logLevel: "warning",
    metafile: true,
  });
  for (const file of Object.keys(made.metafile.inputs)) {
    const inside = /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file);
    if (inside) packages.add(inside[1]);
  }
  return made.outputFiles[0].text;
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const style = await bundle("src/page.css");
const program = await bundle("src/main.ts");
const script = licences() + program;
for (const text of [script, style]) {
  if (/<\/(script|style)/i.test(text)) throw new Error("the bundle would end its own element");
}
const policy =
  `default-src 'none'; img-src data:; script-src ${hash(script)}; style-src ${hash(style)}; ` +
  "base-uri 'none'; form-action 'none'\n";
const files = { "report.js": script, "report.css": style, "policy.txt": policy };

if (process.argv.includes("--check")) {
  for (const [name, text] of Object.entries(files)) {
    if (readFileSync(join(here, "dist", name), "utf8") !== text) {
      console.error(`dist/${name} is not current: run cargo xtask report-ui`);
      process.exit(1);
    }
  }
} else {
  mkdirSync(join(here, "dist"), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(here, "dist", name), text);
}

// The licences of what is bundled, once each, for they ask to be kept with it.
function licences() {
  const parts = [...packages].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return `${name} ${version}\n${readFileSync(join(folder, "LICENSE"), "utf8").trim()}`;
  });
  return `/*!\nThis page's program contains:\n\n${parts.join("\n\n")}\n*/\n`;
}
