"use strict";
// Draws the events embedded in this page. Tracks hold events in order that do not overlap, so what is visible is found by
// bisection; what is narrower than a pixel is summed up pixel by pixel and never drawn by itself.

const GUTTER = 176; // pixels left of the time axis, for the names of ranks
const AXIS_HEIGHT = 28;
const WIDE = 1.5; // pixels from which an event is drawn by itself
const MOST_LINKS = 300; // messages drawn as lines at a time
const SMALLEST_VIEW = 2e-7; // seconds
const ALL_LANES = 32; // pixels of a rank's messages on their way, however many there are at a time
const HEIGHTS = { "heading": 34, "gap": 9, "compute": 20, "communication": 12, "helper thread": 12, "reads": 9, "writes": 9 };
const COLUMNS = {
  begin: Uint32Array, length: Uint32Array, idle: Uint32Array, exposed: Uint32Array, sweep: Int32Array, step: Int32Array,
  phase: Uint16Array, bytes: Uint32Array, peer: Int32Array, activity: Uint8Array, link: Int32Array,
};

const page = JSON.parse(document.getElementById("data").textContent);
const WAIT = page.activities.indexOf("wait");
const POLL = page.activities.indexOf("poll"), TRANSFER = page.activities.indexOf("transfer");
// A wait has two parts: until the message was sent, and while it was on its way.
const EXPOSED = WAIT, LATE = page.activities.length, KINDS = page.activities.length + 1;
const KIND_NAMES = [...page.activities.map((name) => (name === "wait" ? "exposed" : name)), "late"];
const LEGEND = [
  ["compute", "compute"], ["pack", "pack"], ["unpack", "unpack"], ["post", "post"], ["poll", "poll"],
  ["exposed", "wait: message on its way"], ["late", "wait: not sent yet"], ["transfer", "message on its way"],
  ["disk", "wait: disk"], ["read", "slab being read"], ["write", "slab being written"],
];

const DISK = ["disk", "read", "write"];
const ACTIVITY_NAMES = {
  "transfer": "message on its way", "disk": "wait for the disk", "read": "slab being read", "write": "slab being written",
};

const view = { from: 0, to: 1, shown: -1, predicted: true, rows: [], hover: null, selection: null };
const chart = document.getElementById("chart");
const picture = document.getElementById("picture");
const axis = document.getElementById("axis");
const tooltip = document.getElementById("tooltip");
let colours = {};

// -- data ---------------------------------------------------------------------------------------------------------

async function unpackColumn(text, type) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let k = 0; k < raw.length; ++k) bytes[k] = raw.charCodeAt(k);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const column = new type(await new Response(stream).arrayBuffer());
  for (let k = 1; k < column.length; ++k) column[k] += column[k - 1]; // typed arrays wrap around, as the differences do
  return column;
}

async function unpackRun(run) {
  for (const name of Object.keys(COLUMNS)) {
    run[name] = run.columns[name] ? await unpackColumn(run.columns[name], COLUMNS[name]) : new COLUMNS[name](0);
  }
  delete run.columns;
}

const endOf = (run, event) => run.begin[event] + run.length[event];

// -- what is where ------------------------------------------------------------------------------------------------

const shownRuns = () => page.runs.filter((run) => view.shown < 0 || run.number === view.shown);

function layRows() {
  view.rows = [];
  view.whole = Math.max(1e-6, ...shownRuns().map((run) => run.span));
  let y = 0;
  for (const run of shownRuns()) {
    view.rows.push({ kind: "heading", run, y, height: HEIGHTS.heading });
    y += HEIGHTS.heading;
    for (const rank of byNumber(run.ranks)) {
      if (view.predicted || !rank.predicted) y = layRank(run, rank, y);
    }
  }
  view.height = y + HEIGHTS.gap;
}

// Predicted ranks stand below the measured ones of the same number.
function byNumber(ranks) {
  return [...ranks].sort((a, b) => a.rank - b.rank || a.predicted - b.predicted);
}

function layRank(run, rank, y) {
  const top = y;
  // Messages come first: so they lie between the rank that sends and what the receiver does with them.
  const tracks = [...rank.tracks].sort((a, b) => isOnWay(b) - isOnWay(a));
  for (const track of tracks) {
    const height = (HEIGHTS[track.kind] ?? laneHeight(rank)) * (rank.predicted ? 0.55 : 1);
    view.rows.push({ kind: "track", run, rank, track, y, height });
    y += height + Math.min(1, height / 4);
  }
  view.rows.push({ kind: "rank", run, rank, y: top, height: y - top });
  return y + HEIGHTS.gap;
}

function laneHeight(rank) {
  const lanes = rank.tracks.filter((track) => !(track.kind in HEIGHTS)).length;
  return Math.min(5, ALL_LANES / lanes);
}

const plotWidth = () => Math.max(1, chart.clientWidth - GUTTER);
const xOf = (seconds) => GUTTER + ((seconds - view.from) / (view.to - view.from)) * plotWidth();
const timeAt = (x) => view.from + ((x - GUTTER) / plotWidth()) * (view.to - view.from);

// The first event of a track that ends after a time, in ticks.
function firstAfter(run, track, ticks) {
  let low = track.first, high = track.first + track.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (endOf(run, middle) > ticks) high = middle;
    else low = middle + 1;
  }
  return low;
}

// -- drawing ------------------------------------------------------------------------------------------------------

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["surface", "band", "line", "ink", "faint", "accent", "on-compute", ...KIND_NAMES]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

let frame = 0;
function redraw() {
  frame = frame || requestAnimationFrame(() => {
    frame = 0;
    drawAll();
  });
}

function drawAll() {
  const limit = parseFloat(getComputedStyle(chart).maxHeight) || view.height;
  const visible = Math.min(view.height, limit);
  document.getElementById("height").style.height = `${Math.max(0, view.height - visible)}px`;
  const pen = prepare(picture, chart.clientWidth, visible);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.translate(0, -chart.scrollTop);
  const rows = view.rows.filter((row) => row.y + row.height >= chart.scrollTop && row.y <= chart.scrollTop + visible);
  for (const row of rows) if (row.kind === "rank") drawBand(pen, row);
  drawGrid(pen, visible);
  clipped(pen, visible, () => {
    for (const row of rows) if (row.kind === "track") drawTrack(pen, row);
    drawLinks(pen, rows);
    drawHover(pen);
    drawSelection(pen, visible);
  });
  for (const row of rows) drawName(pen, row);
  drawAxis();
  sayRange();
}

function clipped(pen, height, draw) {
  pen.save();
  pen.beginPath();
  pen.rect(GUTTER, chart.scrollTop, plotWidth(), height);
  pen.clip();
  draw();
  pen.restore();
}

function drawBand(pen, row) {
  pen.fillStyle = colours.band;
  const end = xOf(row.rank.total);
  pen.fillRect(GUTTER, row.y - 3, Math.max(0, Math.min(end, chart.clientWidth) - GUTTER), row.height + 5);
}

function drawTrack(pen, row) {
  const { run, track } = row;
  const width = plotWidth(), scale = (run.unit * width) / (view.to - view.from), from = view.from / run.unit;
  const boxes = Array.from({ length: KINDS }, () => []);
  const sums = new Float64Array(KINDS);
  let column = -1;
  const flush = () => {
    if (column >= 0) stack(boxes, sums, GUTTER + column, row);
    column = -1;
  };
  const last = track.first + track.count;
  for (let event = firstAfter(run, track, from); event < last; ++event) {
    const left = (run.begin[event] - from) * scale, size = run.length[event] * scale;
    if (left > width) break;
    if (size >= WIDE) {
      flush();
      wideBoxes(boxes, run, event, GUTTER + left, size, scale, row);
      continue;
    }
    const here = Math.floor(left + size / 2);
    if (here !== column) {
      flush();
      column = here;
      sums.fill(0);
    }
    sumUp(sums, run, event, scale);
  }
  flush();
  pen.globalAlpha = row.rank.predicted ? 0.5 : 1;
  paint(pen, boxes);
  pen.globalAlpha = 1;
  if (track.kind === "compute" && row.height > 12) drawSteps(pen, row, scale, from);
}

function sumUp(sums, run, event, scale) {
  const activity = run.activity[event];
  const spent = (run.length[event] - run.idle[event]) * scale;
  if (activity === WAIT) {
    const exposed = run.exposed[event] * scale;
    sums[EXPOSED] += exposed;
    sums[LATE] += Math.max(0, spent - exposed);
  } else {
    sums[activity] += Math.max(spent, 1e-9);
  }
}

// The shares of a pixel's time, one on top of the other; whatever happened there stays visible.
function stack(boxes, sums, x, row) {
  let bottom = row.y + row.height;
  for (let kind = 0; kind < KINDS; ++kind) {
    if (sums[kind] <= 0) continue;
    const height = Math.max(Math.min(2, row.height), Math.round(Math.min(1, sums[kind]) * row.height));
    const top = Math.max(row.y, bottom - height);
    addColumn(boxes[kind], x, top, Math.max(1, bottom - top));
    bottom = top;
  }
}

// A pixel wide, or one more pixel of the box before it where that has the same height.
function addColumn(list, x, top, height) {
  const last = list.length - 4;
  if (last >= 0 && list[last] + list[last + 2] === x && list[last + 1] === top && list[last + 3] === height) ++list[last + 2];
  else list.push(x, top, 1, height);
}

function wideBoxes(boxes, run, event, x, size, scale, row) {
  // A hair of ground between two events shows where one ends; far away pieces need not be drawn.
  const left = Math.max(x, GUTTER - 4);
  const right = Math.min(x + (size > 5 ? size - 0.75 : size), GUTTER + plotWidth() + 4);
  if (run.activity[event] === POLL) {
    // Polls alternate with slices of the step: the height is their share of the time.
    const share = 1 - run.idle[event] / run.length[event];
    const height = Math.max(1.5, share * row.height);
    boxes[POLL].push(left, row.y + row.height - height, right - left, height);
    return;
  }
  if (run.activity[event] !== WAIT) {
    boxes[run.activity[event]].push(left, row.y, right - left, row.height);
    return;
  }
  const sent = Math.min(Math.max(left, x + size - run.exposed[event] * scale), right);
  boxes[LATE].push(left, row.y, sent - left, row.height);
  boxes[EXPOSED].push(sent, row.y, right - sent, row.height);
}

function paint(pen, boxes) {
  boxes.forEach((list, kind) => {
    pen.fillStyle = colours[KIND_NAMES[kind]];
    for (let k = 0; k < list.length; k += 4) pen.fillRect(list[k], list[k + 1], list[k + 2], list[k + 3]);
  });
}

// Step numbers inside computations that have room for them.
function drawSteps(pen, row, scale, from) {
  const { run, track } = row;
  const room = 30, right = chart.clientWidth;
  pen.fillStyle = colours["on-compute"];
  pen.textAlign = "center";
  pen.font = "11px system-ui, sans-serif";
  let drawn = 0;
  for (let event = firstAfter(run, track, from); event < track.first + track.count && drawn < 200; ++event) {
    const left = GUTTER + (run.begin[event] - from) * scale, size = run.length[event] * scale;
    if (left > right) break;
    if (size < room) {
      if (++drawn > 100) break; // these are too narrow, and so will the next be
      continue;
    }
    const a = Math.max(left, GUTTER), b = Math.min(left + size, right);
    const text = [stepName(run, event), `${run.step[event]}`].find((one) => pen.measureText(one).width < b - a - 8);
    if (text) pen.fillText(text, (a + b) / 2, row.y + row.height / 2 + 0.5);
    ++drawn;
  }
  pen.font = "12px system-ui, sans-serif";
}

// Lines from where a message was sent to where it came, when there are few enough to follow.
function drawLinks(pen, rows) {
  const links = [];
  for (const row of rows) {
    if (row.kind !== "track" || row.rank.predicted || !isOnWay(row.track)) continue;
    const { run, track } = row;
    for (let event = firstAfter(run, track, view.from / run.unit); event < track.first + track.count; ++event) {
      if (run.begin[event] * run.unit > view.to) break;
      if (run.link[event] >= 0) links.push([row, event]);
      if (links.length > MOST_LINKS) return;
    }
  }
  pen.strokeStyle = colours.transfer;
  pen.lineWidth = 1;
  pen.globalAlpha = 0.55;
  for (const [row, event] of links) drawLink(pen, row, event);
  pen.globalAlpha = 1;
}

const isOnWay = (track) => !(track.kind in HEIGHTS);

function drawLink(pen, row, event) {
  const { run } = row;
  const source = rowOf(run, run.link[event]);
  if (!source) return;
  const x = xOf(run.begin[event] * run.unit);
  const [above, below] = source.y < row.y ? [source, row] : [row, source];
  pen.beginPath();
  pen.moveTo(x, above.y + above.height);
  pen.lineTo(x, below.y + (below === row ? row.height / 2 : 0));
  pen.stroke();
}

function rowOf(run, event) {
  return view.rows.find(
    (row) => row.kind === "track" && row.run === run && event >= row.track.first && event < row.track.first + row.track.count);
}

function drawHover(pen) {
  if (!view.hover) return;
  const { row, event } = view.hover;
  const { run } = row;
  const left = xOf(run.begin[event] * run.unit), right = xOf(endOf(run, event) * run.unit);
  pen.strokeStyle = colours.ink;
  pen.lineWidth = 1.5;
  pen.strokeRect(left - 0.5, row.y - 0.5, Math.max(2, right - left), row.height + 1);
  if (run.link[event] >= 0 && run.activity[event] === TRANSFER) drawLink(pen, row, event);
}

function drawSelection(pen, height) {
  if (!view.selection) return;
  const [a, b] = view.selection;
  pen.globalAlpha = 0.18;
  pen.fillStyle = colours.accent;
  pen.fillRect(Math.min(a, b), chart.scrollTop, Math.abs(b - a), height);
  pen.globalAlpha = 1;
}

function drawName(pen, row) {
  pen.textAlign = "left";
  if (row.kind === "heading") {
    pen.fillStyle = colours.ink;
    pen.font = "600 14px system-ui, sans-serif";
    pen.fillText(`${row.run.engine}  ${duration(row.run.seconds)}`, 12, row.y + 19, GUTTER - 18);
    pen.font = "12px system-ui, sans-serif";
  } else if (row.kind === "rank") {
    pen.fillStyle = colours.ink;
    if (!row.rank.predicted) pen.fillText(`rank ${row.rank.rank}`, 12, row.y + 8);
    pen.fillStyle = colours.faint;
    const text = row.rank.predicted ? "predicted" : row.rank.host;
    pen.fillText(shortened(pen, text, 80), 12, row.y + (row.rank.predicted ? row.height / 2 : 23));
  } else if (!row.rank.predicted && row.track.lane === 0) {
    pen.fillStyle = colours.faint;
    pen.textAlign = "right";
    pen.font = "10.5px system-ui, sans-serif";
    pen.fillText(shortName(row.track), GUTTER - 8, row.y + Math.max(row.height, 9) / 2 + 0.5);
    pen.font = "12px system-ui, sans-serif";
  }
}

function shortened(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let kept = text;
  while (kept && pen.measureText(`${kept}…`).width > width) kept = kept.slice(0, -1);
  return `${kept}…`;
}

const shortName = (track) => (isOnWay(track) ? "on their way" : track.kind);

// -- the time axis ------------------------------------------------------------------------------------------------

// Distances of 1, 2 or 5 times a power of ten, about a hundred pixels apart.
function ticks() {
  const wanted = ((view.to - view.from) / plotWidth()) * 110;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= wanted);
  const found = [];
  for (let k = Math.ceil(view.from / step); k * step <= view.to; ++k) found.push(k * step);
  return { step, found };
}

function unitOf(seconds) {
  return [["s", 1], ["ms", 1e-3], ["µs", 1e-6]].find(([, size]) => Math.abs(seconds) > 0.99995 * size) ?? ["ns", 1e-9];
}

function duration(seconds) {
  if (seconds === 0) return "0 s";
  const [unit, size] = unitOf(seconds);
  return `${Number((seconds / size).toPrecision(4))} ${unit}`;
}

function drawGrid(pen, height) {
  pen.fillStyle = colours.line;
  pen.globalAlpha = 0.7;
  for (const time of ticks().found) pen.fillRect(Math.round(xOf(time)), chart.scrollTop, 1, height);
  pen.globalAlpha = 1;
}

function drawAxis() {
  const pen = prepare(axis, axis.clientWidth, AXIS_HEIGHT);
  const { step, found } = ticks();
  const [unit, size] = unitOf(Math.max(step, view.to / 20));
  const digits = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  for (const time of found) {
    const x = Math.round(xOf(time));
    pen.fillStyle = colours.line;
    pen.fillRect(x, AXIS_HEIGHT - 6, 1, 6);
    pen.fillStyle = colours.faint;
    const label = `${(time / size).toFixed(digits)} ${unit}`;
    const half = pen.measureText(label).width / 2;
    pen.fillText(label, Math.min(Math.max(x, GUTTER + half), axis.clientWidth - half - 4), AXIS_HEIGHT / 2 - 2);
  }
  pen.textAlign = "left";
  pen.fillStyle = colours.faint;
  pen.fillText("time since the run began", 12, AXIS_HEIGHT / 2 - 2, GUTTER - 30);
}

function sayRange() {
  const range = document.getElementById("range");
  range.textContent = `${duration(view.from)} to ${duration(view.to)}, ${duration(view.to - view.from)} shown`;
  range.dataset.from = view.from;
  range.dataset.to = view.to;
}

// -- moving about -------------------------------------------------------------------------------------------------

function show(from, to) {
  const size = Math.min(view.whole, Math.max(SMALLEST_VIEW, to - from));
  view.from = Math.min(Math.max(0, from), view.whole - size);
  view.to = view.from + size;
  redraw();
}

const reset = () => show(0, view.whole);
const move = (share) => show(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));

function zoom(factor, around = (view.from + view.to) / 2) {
  const size = Math.min(view.whole, Math.max(SMALLEST_VIEW, (view.to - view.from) * factor));
  const left = (around - view.from) / (view.to - view.from);
  show(around - left * size, around + (1 - left) * size);
}

const positionOf = (event) => {
  const box = chart.getBoundingClientRect();
  return { x: event.clientX - box.left - chart.clientLeft, y: event.clientY - box.top - chart.clientTop + chart.scrollTop };
};

function onWheel(event) {
  event.preventDefault();
  const pixels = event.deltaMode === 1 ? 30 : 1;
  if (event.shiftKey) chart.scrollTop += (event.deltaY || event.deltaX) * pixels;
  else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) move((event.deltaX * pixels) / plotWidth());
  else zoom(Math.exp((event.deltaY * pixels) / 400), timeAt(Math.max(GUTTER, positionOf(event).x)));
}

function onKey(event) {
  const actions = {
    "ArrowLeft": () => move(-0.15), "ArrowRight": () => move(0.15), "ArrowUp": () => (chart.scrollTop -= 60),
    "ArrowDown": () => (chart.scrollTop += 60), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
    "−": () => zoom(1 / 0.6), "0": reset, "Home": reset,
  };
  if (!(event.key in actions) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  actions[event.key]();
}

let drag = null;
function onPress(event) {
  const { x } = positionOf(event);
  if (event.button !== 0 || x < GUTTER || x > chart.clientWidth) return;
  drag = { x, y: event.clientY, from: view.from, to: view.to, top: chart.scrollTop, selects: event.shiftKey };
  chart.setPointerCapture(event.pointerId);
  chart.classList.add(drag.selects ? "selecting" : "moving");
  hideTooltip();
}

function onMove(event) {
  if (!drag) {
    hoverAt(event);
    return;
  }
  const { x } = positionOf(event);
  if (drag.selects) {
    view.selection = [drag.x, Math.max(GUTTER, x)];
    redraw();
  } else {
    const away = ((drag.x - x) / plotWidth()) * (drag.to - drag.from);
    chart.scrollTop = drag.top + drag.y - event.clientY;
    show(drag.from + away, drag.to + away);
  }
}

function onRelease() {
  if (drag && view.selection) {
    const [a, b] = view.selection.map(timeAt).sort((p, q) => p - q);
    view.selection = null;
    if (Math.abs(xOf(a) - xOf(b)) > 3) show(a, b);
    else redraw();
  }
  drag = null;
  chart.classList.remove("moving", "selecting");
}

function onDoubleClick(event) {
  const found = eventAt(positionOf(event));
  if (!found) return;
  const { run } = found.row;
  const begin = run.begin[found.event] * run.unit, size = Math.max(SMALLEST_VIEW, run.length[found.event] * run.unit);
  show(begin - size, begin + 2 * size);
}

function switchTo(number) {
  view.shown = number;
  for (const button of document.querySelectorAll("#switches button")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.run) === number));
  }
  layAnew();
}

function togglePredicted(event) {
  view.predicted = !view.predicted;
  event.currentTarget.setAttribute("aria-pressed", String(view.predicted));
  layAnew();
}

function layAnew() {
  hideTooltip();
  const showedAll = view.to - view.from >= view.whole;
  layRows();
  chart.scrollTop = 0;
  if (showedAll) reset();
  else show(view.from, view.to);
}

// -- tooltips -----------------------------------------------------------------------------------------------------

// The event under a point, or the nearest within a few pixels, and how many share its pixel.
function eventAt({ x, y }) {
  if (x < GUTTER) return null;
  const row = nearestRow(y);
  if (!row) return null;
  const { run, track } = row;
  const reach = ((view.to - view.from) / plotWidth() / run.unit) * 3, at = timeAt(x) / run.unit;
  let best = null;
  let near = 0;
  for (let event = firstAfter(run, track, at - reach); event < track.first + track.count; ++event) {
    if (run.begin[event] > at + reach) break;
    const distance = Math.max(run.begin[event] - at, at - endOf(run, event), 0);
    if (distance <= reach / 6) ++near;
    if (!best || distance < best.distance) best = { row, event, distance };
    if (near > 9999) break;
  }
  return best && { ...best, near };
}

function nearestRow(y) {
  const distance = (row) => Math.max(row.y - y, y - row.y - row.height, 0);
  let best = null;
  for (const row of view.rows) {
    if (row.kind === "track" && distance(row) <= 2 && (!best || distance(row) < distance(best))) best = row;
  }
  return best;
}

function hoverAt(event) {
  const found = eventAt(positionOf(event));
  if (!found) {
    hideTooltip();
    return;
  }
  if (!view.hover || view.hover.event !== found.event || view.hover.row !== found.row) {
    view.hover = found;
    fillTooltip(found);
    redraw();
  }
  placeTooltip(event.clientX, event.clientY);
}

function hideTooltip() {
  tooltip.hidden = true;
  if (view.hover) redraw();
  view.hover = null;
}

function fillTooltip({ row, event, near }) {
  const { run } = row;
  const swatch = document.createElement("i");
  swatch.style.background = colours[KIND_NAMES[run.activity[event]]];
  const name = document.createElement("b");
  name.append(swatch, `${activityName(run, event)}, rank ${row.rank.rank}${row.rank.predicted ? " (predicted)" : ""}`);
  const table = document.createElement("table");
  for (const [label, value] of facts(run, event)) {
    const line = table.insertRow();
    line.insertCell().textContent = label;
    line.insertCell().textContent = value;
  }
  tooltip.replaceChildren(name, table);
  if (near > 3) tooltip.append(`${near > 9999 ? "thousands of" : near} events share this pixel: zoom in`);
}

// Of a program with several phases, with the name of the one that the step belongs to.
function stepName(run, event) {
  return `${run.phases.length ? `${run.phases[run.phase[event]]}, ` : ""}step ${run.step[event]}`;
}

function activityName(run, event) {
  const name = page.activities[run.activity[event]];
  return ACTIVITY_NAMES[name] ?? name;
}

function facts(run, event) {
  const activity = run.activity[event], length = run.length[event] * run.unit, idle = run.idle[event] * run.unit;
  const sender = activity === TRANSFER ? run.link[event] : -1;
  const found = [
    ["began", duration(run.begin[event] * run.unit)],
    ["took", duration(length)],
  ];
  if (idle > 0.02 * length) found.push(["of which spent", duration(length - idle)]);
  if (activity === WAIT) found.push(["message on its way", duration(run.exposed[event] * run.unit)]);
  if (activity === TRANSFER) {
    found.push(["from", `rank ${run.peer[event]}${sender < 0 ? "" : `, sweep ${run.sweep[sender]}, ${stepName(run, sender)}`}`]);
    found.push(["seen in", `sweep ${run.sweep[event]}, ${stepName(run, event)}`]);
  } else {
    const slab = ["read", "write"].includes(page.activities[activity]);
    found.push(["sweep", run.sweep[event]]);
    if (run.phases.length) found.push(["phase", run.phases[run.phase[event]]]);
    found.push([slab ? "slab" : "step", run.step[event]]);
    if (run.peer[event] >= 0) found.push(["other rank", run.peer[event]]);
  }
  if (run.bytes[event] > 0) found.push(["bytes", run.bytes[event].toLocaleString("en")]);
  return found;
}

function placeTooltip(x, y) {
  tooltip.hidden = false;
  const box = tooltip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - 12 - box.width : x + 16;
  const top = y + 18 + box.height > innerHeight ? y - 12 - box.height : y + 18;
  tooltip.style.left = `${Math.max(4, left)}px`;
  tooltip.style.top = `${Math.max(4, top)}px`;
}

// -- beginning ----------------------------------------------------------------------------------------------------

function drawLegend() {
  const legend = document.getElementById("legend");
  const onDisk = page.runs.some((run) => run.ranks.some((rank) => rank.tracks.some((track) => track.kind === "reads")));
  for (const [name, text] of LEGEND) {
    if (DISK.includes(name) && !onDisk) continue;
    const item = document.createElement("li");
    const swatch = document.createElement("i");
    swatch.style.background = `var(--${name})`;
    item.append(swatch, text);
    legend.append(item);
  }
}

function listen() {
  chart.addEventListener("wheel", onWheel, { passive: false });
  chart.addEventListener("keydown", onKey);
  chart.addEventListener("pointerdown", onPress);
  chart.addEventListener("pointermove", onMove);
  chart.addEventListener("pointerup", onRelease);
  chart.addEventListener("pointercancel", onRelease);
  chart.addEventListener("pointerleave", hideTooltip);
  chart.addEventListener("dblclick", onDoubleClick);
  chart.addEventListener("scroll", redraw);
  document.getElementById("zoom-in").addEventListener("click", () => zoom(0.5));
  document.getElementById("zoom-out").addEventListener("click", () => zoom(2));
  document.getElementById("reset").addEventListener("click", reset);
  for (const button of document.querySelectorAll("#switches button")) {
    button.addEventListener("click", () => switchTo(Number(button.dataset.run)));
  }
  document.getElementById("predicted")?.addEventListener("click", togglePredicted);
  new ResizeObserver(redraw).observe(chart);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColours();
    redraw();
  });
}

async function begin() {
  drawLegend();
  readColours();
  if (typeof DecompressionStream === "undefined") {
    document.getElementById("range").textContent = "This browser is too old to draw the timeline; the numbers are below.";
    return;
  }
  for (const run of page.runs) await unpackRun(run);
  layRows();
  listen();
  reset();
  document.documentElement.dataset.ready = "yes";
}

begin();
