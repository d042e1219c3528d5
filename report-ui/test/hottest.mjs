// Whether planted cells are seen: the strongest colour where they lie in the picture.
// A pixel, and the quarter that merged columns may shift it.
const NEAR = 1.3;
const PICTURE = ".structure-detail .heat";

/// First and last column seen, and where the band of threads lies: left, width, top, height.
export const view = (page) =>
  page.evaluate((picture) => {
    const { view, frame } = document.querySelector(picture).dataset;
    return { view: view.split(" ").map(Number), frame: frame.split(" ").map(Number) };
  }, PICTURE);

/// Pixels with the last colour of the ramp on white paper, in CSS pixels.
const hottest = (page) =>
  page.evaluate((picture) => {
    const canvas = document.querySelector(`${picture} canvas`);
    const ratio = canvas.width / canvas.clientWidth;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const found = [];
    for (let y = 0; y < canvas.height; y++) {
      for (let x = 0; x < canvas.width; x++) {
        const i = (y * canvas.width + x) * 4;
        if (data[i] === 14 && data[i + 1] === 20 && data[i + 2] === 48) found.push([x / ratio, y / ratio]);
      }
    }
    return found;
  }, PICTURE);

/// Those of the cells (page, thread) in view that are not seen; `merged` pages to a column.
export async function unseen(page, cells, threads, merged = 1) {
  const { view: [x0, x1], frame: [left, width, top, height] } = await view(page);
  const found = await hottest(page);
  return cells.filter(([number, thread]) => {
    const column = Math.floor(number / merged);
    if (column < x0 || column + 1 > x1) return false;
    const from = left + ((column - x0) / (x1 - x0)) * width;
    const to = left + ((column + 1 - x0) / (x1 - x0)) * width;
    const [low, high] = [top + (thread / threads) * height, top + ((thread + 1) / threads) * height];
    return !found.some(([x, y]) => x >= from - NEAR && x <= Math.max(to, from + 1) + NEAR && y >= low - NEAR && y <= high + NEAR);
  });
}
