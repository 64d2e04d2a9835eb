"use strict";
// Draws the scene (html_page.py says what is in it) in three projections. All text goes in as text, never as HTML.
const scene = JSON.parse(document.getElementById("scene").textContent);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const AXES = { xz: ["z", "x"], yz: ["z", "y"], xy: ["x", "y"] };
const AT = { x: 0, y: 1, z: 2 };
// mm.
const REGIONS = {
  "Whole detector": { x: [-5000, 5000], y: [-4200, 4200], z: [-500, 19500] },
  "Tracking": { x: [-2600, 2600], y: [-2200, 2200], z: [-400, 9700] },
  "VELO": { x: [-48, 48], y: [-48, 48], z: [-320, 800] },
  "Collisions": { x: [-3, 3], y: [-3, 3], z: [-200, 200] },
};
const PARTS = [["VELO", -300, 770], ["UT", 2300, 2680], ["magnet", 3000, 7600], ["SciFi", 7800, 9430], ["ECAL", 12603, 13035], ["M2", 15050, 15480], ["M3", 16250, 16690], ["M4", 17460, 17890], ["M5", 18660, 19090]];
const MARGIN = { left: 62, right: 10, top: 8, bottom: 40 };

const number = (value, digits = 3) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(size))))));
};
const momentum = (mev) => (mev === null ? "–" : number(mev / 1000) + " GeV");
const place = (point) => point.map((value, i) => "xyz"[i] + " " + (value === null ? "open" : number(value, 4))).join(", ") + " mm";
const hex = (id) => "0x" + id.toString(16).padStart(8, "0");

// Layers, drawn in this order. `rows` says what is pointed at: pairs of a name and a value with its unit.
const layers = [];
function add(key, title, colour, mark, items, options) {
  const truth = colour === "truth";
  layers.push(Object.assign({ key, title, colour, mark, items, truth, on: items.length > 0 && !truth }, options));
}
for (const [detector, hits] of Object.entries(scene.hits)) {
  const items = hits.track.map((track, i) => ({
    point: [hits.x[i], hits.y[i], hits.z[i]], track,
    rows: () => [[detector + " hit", hex(hits.id[i])], ["place", place([hits.x[i], hits.y[i], hits.z[i]])],
      ["track", track < 0 ? "on no long or downstream track" : scene.tracks[track].kind + " track " + track]].concat(hits.y[i] === null ? [["", "x is that of the strip at y = 0"]] : []),
  }));
  add("hits" + detector, detector + " hits", "used", "dot", items, {});
}
// Cells of the calorimeter: squares along the beam, bars from the side, whose length grows as the root of the energy.
const BAR = { mm: 1000, mev: 10000, longest: 2300 };
const cells = scene.cells;
add("cells", "ECAL cells", "ecal", "cell", cells.number.map((cell, i) => ({
  point: [cells.x[i], cells.y[i], cells.z], half: cells.half[i], energy: cells.energy[i],
  rows: () => [["ECAL cell", String(cell)], ["place", place([cells.x[i], cells.y[i], cells.z])], ["energy", momentum(cells.energy[i])]],
})), {});
function trackRows(track, i) {
  const names = { long: track.muon ? "Muon track" : "Long track", downstream: "Downstream track", velo: "VELO track" };
  const rows = [[names[track.kind], String(i)]];
  if (track.kind !== "velo") {
    rows.push(["momentum", momentum(track.p)], ["pT", momentum(track.pt)], ["charge", track.charge > 0 ? "+1" : "−1"]);
  }
  rows.push(["η, φ", number(track.eta) + ", " + number(track.phi) + " rad"]);
  if (track.kind !== "downstream") rows.push(["IP", number(track.ip) + " mm"], ["IP χ²", number(track.ip_chi2)]);
  if (track.kind === "downstream") rows.push(["χ² of the search", number(track.chi2)], ["ghost prob.", number(track.ghost)]);
  if (track.kind === "long") rows.push(["χ² / dof", number(track.chi2)], ["ghost prob.", number(track.ghost)]);
  if (track.kind === "long" && track.eop !== null) rows.push(["E / p", number(track.eop) + (track.electron ? ", electron" : "")]);
  rows.push(["hits", track.hits.map(([name, n]) => n + " " + name).join(", ")]);
  return rows;
}
const tracks = scene.tracks.map((track, i) => ({ line: track.line, rows: () => trackRows(track, i), track }));
add("velo", "VELO tracks", "velo", "line", tracks.filter((it) => it.track.kind === "velo"), { width: 0.8 });
add("particles", "True particles", "truth", "dashes", scene.particles.map((it) => ({
  line: it.line,
  rows: () => [["True particle", it.name], ["momentum", momentum(it.p)], ["pT", momentum(it.pt)], ["η", number(it.eta)],
    ["from", it.mother || "the collision"], ["origin", place(it.line.slice(0, 3))],
    ["", [it.long && "long", it.beauty && "from beauty", it.signal && "signal"].filter(Boolean).join(", ")]],
})), { width: 1 });
add("long", "Long tracks", "long", "line", tracks.filter((it) => it.track.kind === "long" && !it.track.muon), { width: 1.2 });
add("downstream", "Downstream tracks", "down", "line", tracks.filter((it) => it.track.kind === "downstream"), { width: 1.4 });
function v0Rows(it, i) {
  return [["Downstream V0", String(i)], ["", it.kinds.join(", ")], ["place", place(it.place)], ["tracks", it.tracks.join(" and ")],
    ["χ²", number(it.chi2)], ["pT", momentum(it.pt)], ["IP", number(it.ip) + " mm"]].concat(it.masses.map(([name, mass]) => ["m(" + name + ")", number(mass, 4) + " MeV"]));
}
add("v0legs", "From downstream V0s to the UT", "down", "dashes", scene.downstream_v0s.flatMap((it, i) => it.legs.map((line) => ({ line, rows: () => v0Rows(it, i) }))), { width: 1 });
add("stubs", "Muon stubs", "stub", "line", scene.stubs.map((it, i) => ({
  line: it.line, rows: () => [["Muon stub", String(i)], ["χ² in x, in y", number(it.chi2_x) + ", " + number(it.chi2_y)]],
})), { width: 1.8 });
add("muons", "Muons", "muon", "line", tracks.filter((it) => it.track.muon), { width: 2.2 });
add("collisions", "True collisions", "truth", "cross", scene.collisions.map((it) => ({
  point: it.place, rows: () => [["True collision", ""], ["place", place(it.place)], ["tracks", String(it.tracks)]],
})), {});
add("decays", "Secondary vertices", "sv", "square", scene.decays.map((it, i) => ({
  point: it.place,
  rows: () => [["Secondary vertex", String(i)], ["", it.kinds.join(", ")], ["place", place(it.place)], ["σ", it.errors.map((s) => number(s, 2)).join(", ") + " mm"],
    ["tracks", it.tracks.join(" and ")], ["χ²", number(it.chi2)], ["pT", momentum(it.pt)], ["flight", number(it.flight) + " mm"],
    ["flight χ²", number(it.flight_chi2)], ["corrected mass", number(it.corrected_mass, 4) + " MeV"]].concat(it.masses.map(([name, mass]) => ["m(" + name + ")", number(mass, 4) + " MeV"])),
})), {});
add("v0s", "Downstream V0s", "down", "square", scene.downstream_v0s.map((it, i) => ({ point: it.place, rows: () => v0Rows(it, i) })), {});
add("clusters", "ECAL clusters", "ecal", "square", scene.clusters.map((it, i) => ({
  point: it.place,
  rows: () => [["ECAL cluster", String(i)], ["place", place(it.place)], ["energy", momentum(it.energy)], ["ET", momentum(it.et)], ["E19", number(it.e19)]],
})), {});
add("vertices", "Primary vertices", "pv", "diamond", scene.vertices.map((it, i) => ({
  point: it.place,
  rows: () => [["Primary vertex", String(i)], ["place", place(it.place)], ["σ", it.errors.map((s) => number(s, 2)).join(", ") + " mm"], ["tracks", number(it.tracks) + " (sum of weights)"]],
})), {});

function drawMark(context, mark, x, y, size) {
  context.beginPath();
  if (mark === "diamond") {
    context.moveTo(x, y - size); context.lineTo(x + size, y); context.lineTo(x, y + size); context.lineTo(x - size, y); context.closePath();
  } else if (mark === "square") {
    context.rect(x - size * 0.75, y - size * 0.75, size * 1.5, size * 1.5);
  } else {
    context.moveTo(x - size, y - size); context.lineTo(x + size, y + size); context.moveTo(x - size, y + size); context.lineTo(x + size, y - size);
  }
}

class View {
  constructor(id) {
    this.id = id;
    this.canvas = document.getElementById(id);
    this.context = this.canvas.getContext("2d");
    [this.horizontal, this.vertical] = AXES[id];
    this.listen();
  }
  show(region) {
    this.u = region[this.horizontal].slice();
    this.v = region[this.vertical].slice();
    if (this.id === "xy") {
      // The same scale along both axes.
      const { width, height } = this.inner(), half = Math.max((this.u[1] - this.u[0]) / width, (this.v[1] - this.v[0]) / height) / 2;
      this.u = [-half * width, half * width];
      this.v = [-half * height, half * height];
    }
  }
  inner() {
    const box = this.canvas.getBoundingClientRect();
    return { width: Math.max(20, box.width - MARGIN.left - MARGIN.right), height: Math.max(20, box.height - MARGIN.top - MARGIN.bottom) };
  }
  toX(value) { return MARGIN.left + ((value - this.u[0]) / (this.u[1] - this.u[0])) * this.size.width; }
  toY(value) { return MARGIN.top + ((this.v[1] - value) / (this.v[1] - this.v[0])) * this.size.height; }
  draw() {
    const box = this.canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1, c = this.context;
    this.size = this.inner();
    const width = Math.round(box.width * ratio), height = Math.round(box.height * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) { this.canvas.width = width; this.canvas.height = height; }
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, box.width, box.height);
    this.grid();
    c.save();
    c.beginPath();
    c.rect(MARGIN.left, MARGIN.top, this.size.width, this.size.height);
    c.clip();
    for (const layer of layers) if (layer.on) this.layer(layer);
    if (kept) this.highlight(kept);
    if (pointed && pointed !== kept) this.highlight(pointed);
    c.restore();
    c.strokeStyle = css("line");
    c.strokeRect(MARGIN.left + 0.5, MARGIN.top + 0.5, this.size.width - 1, this.size.height - 1);
  }
  ticks(range, length, space) {
    const raw = ((range[1] - range[0]) * space) / length, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw);
    const found = [];
    for (let i = Math.ceil(range[0] / step); i * step <= range[1]; i++) found.push(i * step);
    return [found, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))];
  }
  grid() {
    const c = this.context, { width, height } = this.size, text = css("quiet");
    const right = MARGIN.left + width, bottom = MARGIN.top + height;
    c.font = "12px system-ui, sans-serif";
    c.lineWidth = 1;
    const names = [], ends = [-Infinity, -Infinity];
    if (this.horizontal === "z") {
      for (const [name, begin, end] of PARTS) {
        const from = Math.max(MARGIN.left, this.toX(begin)), to = Math.min(right, this.toX(end));
        if (to <= from) continue;
        c.fillStyle = css("part");
        c.fillRect(from, MARGIN.top, to - from, height);
        // Two lines of names, so that those of narrow parts side by side are legible.
        const half = c.measureText(name).width / 2;
        const x = Math.max(MARGIN.left + half + 2, Math.min(right - half - 2, (from + to) / 2));
        const line = ends.findIndex((end) => x - half >= end + 4);
        if (to - from < 2 || line < 0) continue;
        ends[line] = x + half;
        names.push([name, x, MARGIN.top + 14 + 14 * line]);
      }
    }
    c.strokeStyle = css("grid");
    c.fillStyle = text;
    const [us, uDigits] = this.ticks(this.u, width, 80), [vs, vDigits] = this.ticks(this.v, height, 42);
    c.beginPath();
    c.textAlign = "center";
    for (const value of us) {
      const x = this.toX(value), label = value.toFixed(uDigits);
      c.moveTo(x, MARGIN.top);
      c.lineTo(x, bottom);
      // The label of a tick at the right edge stays on the canvas.
      c.fillText(label, Math.min(x, right + MARGIN.right - 4 - c.measureText(label).width / 2), bottom + 16);
    }
    c.textAlign = "right";
    for (const value of vs) { const y = this.toY(value); c.moveTo(MARGIN.left, y); c.lineTo(right, y); c.fillText(value.toFixed(vDigits), MARGIN.left - 6, y + 4); }
    c.stroke();
    c.textAlign = "center";
    // Over the lines of the grid, which would strike a name out.
    c.strokeStyle = css("part");
    c.lineWidth = 4;
    c.lineJoin = "round";
    for (const [name, x, y] of names) { c.strokeText(name, x, y); c.fillText(name, x, y); }
    c.lineWidth = 1;
    c.fillText(this.horizontal + " (mm)", MARGIN.left + width / 2, bottom + 33);
    c.save();
    c.translate(13, MARGIN.top + height / 2);
    c.rotate(-Math.PI / 2);
    c.fillText(this.vertical + " (mm)", 0, 0);
    c.restore();
  }
  layer(layer) {
    const c = this.context, h = AT[this.horizontal], v = AT[this.vertical];
    if (layer.mark === "dot") {
      // Where y is shown the hits of strips that no track crosses have no place.
      const free = css("free"), used = css("used");
      const wide = Math.min(3, Math.max(1.4, 1.4 * Math.sqrt(3000 / (this.u[1] - this.u[0]))));
      for (const [colour, wanted, size] of [[free, false, wide], [used, true, wide * 1.25]]) {
        c.fillStyle = colour;
        for (const item of layer.items) {
          if (item.track >= 0 !== wanted || item.point[h] === null || item.point[v] === null) continue;
          if (!this.shows(item.point[2])) continue;
          const x = this.toX(item.point[h]), y = this.toY(item.point[v]);
          if (x >= MARGIN.left && x <= MARGIN.left + this.size.width) c.fillRect(x - size / 2, y - size / 2, size, size);
        }
      }
    } else if (layer.mark === "cell") {
      c.fillStyle = css(layer.colour);
      for (const item of layer.items) {
        if (!this.shows(item.point[2])) continue;
        const length = Math.min(BAR.longest, BAR.mm * Math.sqrt(item.energy / BAR.mev)), z = item.point[2];
        const [left, right] = this.horizontal === "z" ? [z, z + length] : [item.point[h] - item.half, item.point[h] + item.half];
        const x = this.toX(left), y = this.toY(item.point[v] + item.half);
        c.globalAlpha = this.horizontal === "z" ? 0.5 : Math.min(1, 0.15 + length / BAR.longest);
        c.fillRect(x, y, Math.max(1, this.toX(right) - x), Math.max(1, this.toY(item.point[v] - item.half) - y));
      }
      c.globalAlpha = 1;
    } else if (layer.mark === "line" || layer.mark === "dashes") {
      c.strokeStyle = css(layer.colour);
      c.lineWidth = layer.width;
      c.globalAlpha = layer.mark === "dashes" ? 0.75 : 0.85;
      c.setLineDash(layer.mark === "dashes" ? [5, 4] : []);
      c.beginPath();
      for (const item of layer.items) this.trace(item.line, h, v);
      c.stroke();
      c.setLineDash([]);
      c.globalAlpha = 1;
    } else {
      c.lineWidth = 1.4;
      c.strokeStyle = css("back");
      c.fillStyle = css(layer.colour);
      for (const item of layer.items) {
        if (!this.shows(item.point[2])) continue;
        drawMark(c, layer.mark, this.toX(item.point[h]), this.toY(item.point[v]), layer.mark === "diamond" ? 6 : 5);
        if (layer.mark === "cross") { c.strokeStyle = css(layer.colour); c.stroke(); } else { c.fill(); c.lineWidth = 1; c.stroke(); }
      }
    }
  }
  // Along the beam there is only what lies in the range of z that the views from the side show: what lies behind would
  // hide it.
  shows(z) {
    const range = views[0].u;
    return this.id !== "xy" || (z >= range[0] && z <= range[1]);
  }
  // The places at both ends of the part of a line that is shown, from one of its points to the next; null if there is none.
  part(line, i, h, v) {
    const [low, high] = this.id === "xy" ? views[0].u : [-Infinity, Infinity];
    const from = line[i - 1], to = line[i + 2];
    if (Math.max(from, to) < low || Math.min(from, to) > high) return null;
    const at = (z) => {
      const t = to === from ? 0 : (Math.min(high, Math.max(low, z)) - from) / (to - from);
      return [this.toX(line[i - 3 + h] + t * (line[i + h] - line[i - 3 + h])), this.toY(line[i - 3 + v] + t * (line[i + v] - line[i - 3 + v]))];
    };
    return [at(from), at(to)];
  }
  trace(line, h, v) {
    const c = this.context;
    let drawing = false;
    for (let i = 3; i < line.length; i += 3) {
      const ends = this.part(line, i, h, v);
      if (ends && !drawing) c.moveTo(...ends[0]);
      if (ends) c.lineTo(...ends[1]);
      drawing = ends !== null;
    }
  }
  highlight(item) {
    const c = this.context, h = AT[this.horizontal], v = AT[this.vertical];
    c.strokeStyle = css("text");
    if (item.line) { c.lineWidth = 3; c.beginPath(); this.trace(item.line, h, v); c.stroke(); }
    else if (item.point[h] !== null && item.point[v] !== null) {
      c.lineWidth = 2; c.beginPath(); c.arc(this.toX(item.point[h]), this.toY(item.point[v]), 9, 0, 7); c.stroke();
    }
  }
  nearest(x, y) {
    const h = AT[this.horizontal], v = AT[this.vertical];
    let best = null, least = 9;
    // Marks lie above lines, and lines above hits: the later layer wins by a small lead.
    layers.forEach((layer, order) => {
      if (!layer.on) return;
      const lead = order * 0.25;
      for (const item of layer.items) {
        let distance = Infinity;
        if (item.point) {
          if (item.point[h] !== null && item.point[v] !== null && this.shows(item.point[2])) distance = Math.hypot(this.toX(item.point[h]) - x, this.toY(item.point[v]) - y);
        } else distance = this.toLine(item.line, h, v, x, y);
        if (distance - lead < least) { least = distance - lead; best = item; }
      }
    });
    return best;
  }
  toLine(line, h, v, x, y) {
    let least = Infinity;
    for (let i = 3; i < line.length; i += 3) {
      const ends = this.part(line, i, h, v);
      if (!ends) continue;
      const [[ax, ay], [bx, by]] = ends;
      const dx = bx - ax, dy = by - ay, length = dx * dx + dy * dy;
      const t = length ? Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / length)) : 0;
      least = Math.min(least, Math.hypot(ax + t * dx - x, ay + t * dy - y));
    }
    return least;
  }
  listen() {
    const canvas = this.canvas;
    let from = null, moved = false;
    const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const [x, y] = at(event), factor = Math.exp(Math.sign(event.deltaY || event.deltaX) * 0.18);
      this.zoom(x, y, event.altKey ? 1 : factor, event.shiftKey ? 1 : factor);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => { from = at(event); moved = false; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { if (from && !moved) { kept = pointed; tell(); redraw(); } from = null; });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (from) {
        if (Math.hypot(x - from[0], y - from[1]) > 3) moved = true;
        if (moved) { this.pan(x - from[0], y - from[1]); from = [x, y]; hideTip(); }
        return;
      }
      const found = this.nearest(x, y);
      if (found !== pointed) { pointed = found; tell(); redraw(); }
      if (found) showTip(found, event.clientX, event.clientY); else hideTip();
    });
    canvas.addEventListener("pointerleave", () => { pointed = null; hideTip(); tell(); redraw(); });
    canvas.addEventListener("dblclick", () => setRegion(current));
    canvas.addEventListener("keydown", (event) => {
      const { width, height } = this.inner(), x = MARGIN.left + width / 2, y = MARGIN.top + height / 2;
      const keys = { "+": () => this.zoom(x, y, 0.8, 0.8), "-": () => this.zoom(x, y, 1.25, 1.25), ArrowLeft: () => this.pan(40, 0), ArrowRight: () => this.pan(-40, 0), ArrowUp: () => this.pan(0, 40), ArrowDown: () => this.pan(0, -40), "0": () => setRegion(current) };
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    });
  }
  zoom(x, y, uFactor, vFactor) {
    const u = this.u[0] + ((x - MARGIN.left) / this.size.width) * (this.u[1] - this.u[0]);
    const v = this.v[1] - ((y - MARGIN.top) / this.size.height) * (this.v[1] - this.v[0]);
    // Between a micrometre and a hundred metres there is something to see.
    if ((this.u[1] - this.u[0]) * uFactor < 1e-3 || (this.u[1] - this.u[0]) * uFactor > 1e5) return;
    this.u = this.u.map((end) => u + (end - u) * uFactor);
    this.v = this.v.map((end) => v + (end - v) * vFactor);
    this.share();
  }
  pan(dx, dy) {
    const du = (-dx / this.size.width) * (this.u[1] - this.u[0]), dv = (dy / this.size.height) * (this.v[1] - this.v[0]);
    this.u = this.u.map((end) => end + du);
    this.v = this.v.map((end) => end + dv);
    this.share();
  }
  share() {
    // Both views from the side show the same range of z.
    if (this.horizontal === "z") for (const view of views) if (view.horizontal === "z") view.u = this.u.slice();
    redraw();
  }
}

let pointed = null, kept = null, current = "Whole detector", waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; for (const view of views) view.draw(); });
}
function element(tag, text, parent) {
  const made = document.createElement(tag);
  if (text !== null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}
function fill(target, item, most) {
  target.replaceChildren();
  const rows = item.rows().filter(([name, value], i) => i === 0 || value !== "");
  element("b", rows[0].join(" "), target);
  const list = element("dl", null, target);
  for (const [name, value] of rows.slice(1, most)) { element("dt", name, list); element("dd", value, list); }
}
function tell() {
  const info = document.getElementById("info"), item = kept || pointed;
  if (item) fill(info, item, 40);
  else { info.replaceChildren(); element("p", "Point at a hit, a track, a cell or a vertex; click to keep it.", info).className = "quiet"; }
}
const tip = document.getElementById("tip");
function showTip(item, x, y) {
  fill(tip, item, 9);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.min(x + 14, innerWidth - box.width - 8) + "px";
  tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
}
function hideTip() { tip.hidden = true; }
function setRegion(name) {
  current = name;
  for (const button of document.querySelectorAll("#regions button")) button.setAttribute("aria-pressed", String(button.textContent === name));
  for (const view of views) view.show(REGIONS[name]);
  redraw();
}
for (const name of Object.keys(REGIONS)) element("button", name, document.getElementById("regions")).addEventListener("click", () => setRegion(name));
const SVG = "http://www.w3.org/2000/svg";
function swatch(layer) {
  const svg = document.createElementNS(SVG, "svg"), shape = document.createElementNS(SVG, "path"), colour = "var(--" + layer.colour + ")";
  svg.setAttribute("width", 18); svg.setAttribute("height", 12);
  const paths = { dot: "M7 4h4v4h-4z", cell: "M2 3h12v6h-12z", line: "M1 6h16", dashes: "M1 6h16", cross: "M5 2l8 8M5 10l8-8", square: "M5 2h8v8h-8z", diamond: "M9 0l6 6l-6 6l-6-6z" };
  shape.setAttribute("d", paths[layer.mark]);
  const stroked = ["line", "dashes", "cross"].includes(layer.mark);
  shape.setAttribute("style", stroked ? "fill:none;stroke-width:2;stroke:" + colour : "fill:" + colour);
  if (layer.mark === "dashes") shape.setAttribute("stroke-dasharray", "4 2");
  svg.append(shape);
  return svg;
}
for (const layer of [...layers].sort((a, b) => a.truth - b.truth)) {
  const label = element("label", null, document.getElementById("layers")), box = document.createElement("input");
  box.type = "checkbox"; box.checked = layer.on; box.disabled = layer.items.length === 0;
  if (box.disabled) label.className = "none";
  box.addEventListener("change", () => { layer.on = box.checked; pointed = null; redraw(); });
  label.append(box, swatch(layer));
  label.append(layer.title + " (" + layer.items.length + ")");
}
const views = Object.keys(AXES).map((id) => new View(id));
setRegion(current);
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
