// Not a test: how fast the page is, printed. HITHER_PAGE and HITHER_EXPECTED as for tests.
import { unseen } from "./hottest.mjs";
import { browser, errors, expected, open, settled } from "./open.mjs";

const STEPS = 24;
const middle = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const say = (what, value, limit = "") => console.log(`  ${what.padEnd(14)} ${value}${limit && ` (limit ${limit})`}`);

const page = await open({ ready: false });
await page.waitForSelector(".structure-detail .heat[data-first]", { timeout: 60_000, state: "attached" });
await settled(page);
const first = await page.$eval(".structure-detail .heat", (heat) => Number(heat.dataset.first));
say("first picture", `${(first / 1000).toFixed(2).padStart(8)} s`, expected.limits?.picture);

/// One zoom by keyboard: from the key to the picture's end, without the wait for a frame.
const step = (key) => page.evaluate(async (key) => {
  const heat = document.querySelector(".structure-detail .heat");
  const plot = heat.querySelector("[role=application]");
  delete heat.dataset.drawn;
  const start = performance.now();
  plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const handled = performance.now() - start;
  while (heat.dataset.drawn === undefined) await new Promise(requestAnimationFrame);
  return handled + Number(heat.dataset.drawn);
}, key);

const merged = await page.$eval(".structure-detail .axis-title", (title) => Number(/\((\d+) to/.exec(title.textContent)?.[1] ?? 1));
let lost = (await unseen(page, expected.cells, expected.threads, merged)).length;
const times = [];
for (let i = 0; i < STEPS; i++) {
  times.push(await step(i < STEPS / 2 ? "+" : "-"));
  lost += (await unseen(page, expected.cells, expected.threads, merged)).length;
}
say("zoom step", `${middle(times).toFixed(1).padStart(8)} ms median, ${Math.max(...times).toFixed(1)} ms most`, expected.limits?.zoom);
say("hot cells", `${String(lost).padStart(8)} not seen in ${STEPS + 1} pictures`);
if (merged > 1) say("merged", `${String(merged).padStart(8)} pages to a column`);
if (errors.length) say("errors", errors.join("; "));
await browser.close();
