// Opens a page in Debian's chromium and watches what it does.
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import { chromium } from "playwright-core";

export const expected = JSON.parse(process.env.HITHER_EXPECTED ?? "{}");
const file = process.env.HITHER_PAGE;

export const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});

/// What went wrong on any page, and what left one.
export const errors = [];
export const requests = [];

export async function open({ width = 1280, height = 900, theme = "light", touch = false, path = file, ready = true } = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    hasTouch: touch,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on("console", (message) => {
    // That tests read pixels is no fault of the page.
    if (message.text().startsWith("Canvas2D:")) return;
    if (["error", "warning"].includes(message.type())) errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) requests.push(request.url());
  });
  await page.goto(`file://${path}`);
  if (ready) {
    await page.waitForSelector("html[data-ready=yes]");
    await settled(page);
  }
  return page;
}

/// Waits until every picture that is there was drawn, and two frames more.
export async function settled(page) {
  await page.waitForFunction(() =>
    [...document.querySelectorAll(".heat")].every((heat) => heat.dataset.drawn !== undefined));
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/// All pixels of a canvas as one number that changes with them.
export const pixels = (page, selector) =>
  page.evaluate((selector) => {
    const canvas = document.querySelector(selector);
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let hash = 0;
    for (let i = 0; i < data.length; i += 4) hash = (hash * 31 + data[i] + data[i + 1] * 7 + data[i + 2] * 13) | 0;
    return hash;
  }, selector);

const made = await build({ entryPoints: [new URL("sample.ts", import.meta.url).pathname], bundle: true, write: false, format: "esm" });

/// A page with something of everything.
export const { page: sample } = await import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].text).toString("base64")}`);

/// A copy of the page with other data, beside it.
export function withData(data, name) {
  const html = readFileSync(file, "utf8");
  const text = JSON.stringify(data).replaceAll("<", "\\u003c");
  const path = `${file}.${name}.html`;
  writeFileSync(path, html.replace(/(id="data">)[^]*?(<\/script>)/, (_, before, after) => before + text + after));
  return path;
}
