'use strict';
/* Shows the graphs of the page: folds them by layer, lays them out, draws them, and says what a node is. The data is
 * described in session/picture.c. */
const DATA = JSON.parse(document.getElementById('data').textContent);
const TEXT = DATA.strings;
const PHASES = [
  {name: 'forward', color: '#d9e8fb', edge: '#5b8fd0'},
  {name: 'backward', color: '#fbe0d6', edge: '#d0805b'},
  {name: 'sum over towers', color: '#e7dbf7', edge: '#9065c4'},
  {name: 'update', color: '#dbf0dc', edge: '#57a05c'},
  {name: 'variable', color: '#fdf1c7', edge: '#c0a23a'},
  {name: 'constant', color: '#eceff3', edge: '#98a2b0'},
];
const FORWARD = 0, STATE = 4, CONSTANT = 5;
const $ = id => document.getElementById(id);

/* ---- the graph after a pass ---- */

/* Nodes as objects, inputs before readers. */
function graphOf(pass) {
  const names = new Map();
  const nodes = DATA.passes[pass].nodes.map((record, index) => {
    const r = DATA.records[record];
    const n = {index, record, name: TEXT[r[0]], op: TEXT[r[1]], type: TEXT[r[2]], dist: TEXT[r[3]], tower: r[4], replica: r[5],
               device: r[6], phase: r[7], why: TEXT[r[8]], origin: TEXT[r[9]], line: TEXT[r[10]], flops: r[11], bytes: r[12],
               inputs: r[13].map(name => names.get(name)).filter(Boolean), readers: []};
    names.set(r[0], n);
    for (const input of n.inputs) input.readers.push(n);
    return n;
  });
  /* What only stands ready belongs to the phase that reads it first. */
  for (let i = nodes.length; i-- > 0;) {
    const n = nodes[i];
    n.part = n.phase < STATE ? n.phase : n.readers.length ? n.readers[0].part : FORWARD;
  }
  for (const n of nodes) n.base = baseName(n);
  const outputs = DATA.passes[pass].outputs.map(o => ({role: TEXT[o[0]], name: TEXT[o[1]], node: TEXT[o[2]]}));
  return {nodes, outputs, byName: new Map(nodes.map(n => [n.name, n]))};
}

/* The name that a node shares with its like in the other towers. */
function baseName(n) {
  let name = n.name;
  if (n.tower > 0 && name.startsWith(`tower_${n.tower}/`)) name = name.slice(`tower_${n.tower}/`.length);
  if (n.replica >= 0 && name.endsWith(`/replica_${n.replica}`)) name = name.slice(0, -`/replica_${n.replica}`.length);
  /* A copy's number is that of its device. */
  return n.op === 'copy' ? name.replace(/\.copy_\d+$/, '.copy') : name;
}

/* ---- what is seen of it: boxes ---- */

const view = {pass: 0, graph: null, merged: true, open: new Set(), selected: null, node: null, boxes: [], edges: [], lanes: [],
              scale: 1, x: 0, y: 0, matches: [], match: -1, changes: false};

/* What is the same in several towers, on several devices, shares a lane where towers are shown as one. */
function laneOf(n) {
  if (view.merged && view.spread.get(likes(n)).size > 1) return 'towers';
  return n.device >= 0 ? DATA.devices[n.device].name : '';
}

const likes = n => `${n.part}|${n.base}`;

function findSpread(nodes) {
  view.spread = new Map();
  for (const n of nodes) {
    const key = likes(n);
    if (!view.spread.has(key)) view.spread.set(key, new Set());
    view.spread.get(key).add(n.device);
  }
}

/* The layers that a node is in, the outermost first. */
function layersOf(n) {
  const parts = n.base.split('.'), layers = [];
  for (let i = 1; i <= parts.length; i++) layers.push(`${laneOf(n)}|${n.part}|${parts.slice(0, i).join('.')}`);
  return layers;
}

/* How many different nodes there are in each layer, those of several towers as one. */
function countLayers(nodes) {
  const members = new Map();
  for (const n of nodes) {
    n.layers = layersOf(n);
    for (const layer of n.layers) {
      if (!members.has(layer)) members.set(layer, new Set());
      members.get(layer).add(n.base);
    }
  }
  return members;
}

/* The box that a node is seen in: its first layer that is folded, or its own. */
function boxKey(n, members) {
  for (const layer of n.layers) {
    if (members.get(layer).size === 1) break;
    if (!view.open.has(layer)) return layer;
  }
  return `${laneOf(n)}|${n.part}|=${n.base}`;
}

function makeBoxes() {
  const {nodes} = view.graph;
  findSpread(nodes);
  const members = countLayers(nodes), boxes = new Map();
  for (const n of nodes) {
    const key = boxKey(n, members);
    let box = boxes.get(key);
    if (!box) {
      const folded = !key.includes('|=');
      box = {key, folded, label: key.slice(key.lastIndexOf('|') + (folded ? 1 : 2)), lane: laneOf(n), nodes: [], inputs: new Map(),
             readers: new Map(), order: 0};
      boxes.set(key, box);
    }
    box.nodes.push(n);
    n.box = box;
  }
  view.boxes = [...boxes.values()];
  for (const box of view.boxes) describeBox(box);
  view.edges = makeEdges();
}

function describeBox(box) {
  const first = box.nodes[0];
  const bases = new Set(box.nodes.map(n => n.base)), towers = new Set(box.nodes.map(n => n.tower).filter(t => t >= 0));
  const replicas = new Set(box.nodes.map(n => n.replica).filter(r => r >= 0));
  const phases = new Map();
  for (const n of box.nodes) phases.set(n.phase, (phases.get(n.phase) || 0) + 1);
  const computing = [...phases].filter(p => p[0] < STATE);
  box.phase = (computing.length ? computing : [...phases]).sort((a, b) => b[1] - a[1])[0][0];
  box.count = bases.size;
  box.times = Math.max(towers.size, replicas.size, 1);
  /* Phases come one behind the other, and a layer begins with the first thing that it computes. */
  box.part = first.part;
  const begins = new Map();
  for (const n of [...box.nodes.filter(n => n.phase < STATE), ...box.nodes]) {
    const copy = n.tower >= 0 ? n.tower : n.replica;
    if (!begins.has(copy)) begins.set(copy, n.index);
  }
  box.order = Math.max(...begins.values());
  box.below = box.folded ? `${box.count} nodes` : first.op === box.label ? first.type : `${first.op} ${first.type}`;
}

function makeEdges() {
  const edges = new Map();
  for (const n of view.graph.nodes) {
    for (const from of n.inputs) {
      if (from.box === n.box) continue;
      let edge = from.box.readers.get(n.box);
      if (!edge) {
        edge = {from: from.box, to: n.box, bytes: 0, crosses: false, values: new Set()};
        from.box.readers.set(n.box, edge);
        n.box.inputs.set(from.box, edge);
        edges.set(edge, true);
      }
      if (!edge.values.has(from)) {
        edge.values.add(from);
        /* A copy is the crossing: it lies where it is read. */
        const crosses = from.device >= 0 && n.device >= 0 && from.device !== n.device;
        if (crosses) edge.crosses = true, edge.bytes += n.op === 'copy' ? n.bytes : from.bytes;
      }
    }
  }
  return [...edges.keys()];
}

/* ---- layout: ranks from top to bottom, lanes from left to right ---- */

const BOX = {height: 40, gapX: 18, gapY: 34, least: 84, most: 250, lanePad: 26};
const measure = document.createElement('canvas').getContext('2d');
measure.font = '600 13px system-ui, sans-serif';

function widthOf(box) {
  const texts = [box.label + (box.folded ? '  +' : '') + (box.times > 1 ? ` ×${box.times}` : ''), box.below];
  const width = Math.max(...texts.map(t => measure.measureText(t).width)) + 30;
  return Math.min(BOX.most, Math.max(BOX.least, width));
}

/* The longest way from a source; edges against the order of the nodes, which folding can make, do not count. */
function findRanks(boxes) {
  const sorted = [...boxes].sort((a, b) => a.part - b.part || a.order - b.order);
  sorted.forEach((box, i) => { box.place = i; });
  for (const box of sorted) {
    box.rank = 0;
    for (const from of box.inputs.keys()) if (from.place < box.place) box.rank = Math.max(box.rank, from.rank + 1);
  }
  /* What nothing leads to stands right above its first reader. */
  for (const box of sorted) {
    const later = [...box.readers.keys()].filter(to => to.place > box.place);
    if (![...box.inputs.keys()].some(from => from.place < box.place) && later.length)
      box.rank = Math.max(0, Math.min(...later.map(to => to.rank)) - 1);
  }
  return sorted;
}

/* Rows of a lane: a rank that is too wide for one goes over several. */
function makeRows(sorted) {
  const ranks = new Map();
  for (const box of sorted) {
    box.width = widthOf(box);
    const key = `${box.rank}\n${box.lane}`;
    if (!ranks.has(key)) ranks.set(key, []);
    ranks.get(key).push(box);
  }
  return ranks;
}

const average = (boxes, otherwise) => {
  let sum = 0, n = 0;
  for (const b of boxes) if (b.middle !== undefined) sum += b.middle, n++;
  return n ? sum / n : otherwise;
};

/* Where a box wants to be, from what is above it or below it; then no two overlap. */
function placeRow(row, wanted) {
  row.forEach(box => { box.wish = wanted(box); });
  row.sort((a, b) => a.wish - b.wish || a.place - b.place);
  let right = -Infinity;
  for (const box of row) {
    box.middle = Math.max(box.wish, right + box.width / 2);
    right = box.middle + box.width / 2 + BOX.gapX;
  }
  /* The row as a whole moves to where its boxes want to be on average. */
  const drift = row.reduce((sum, b) => sum + b.wish - b.middle, 0) / row.length;
  for (const box of row) box.middle += drift;
}

function layout() {
  const sorted = findRanks(view.boxes), ranks = makeRows(sorted);
  const lanes = [...new Set(view.boxes.map(b => b.lane))].sort((a, b) => (a !== 'towers') - (b !== 'towers') || a.localeCompare(b, 'en', {numeric: true}));
  const laneRows = lanes.map(() => []), heights = [];
  const wide = Math.max(900, 110 * Math.sqrt(view.boxes.length));
  for (const [key, boxes] of ranks) {
    const [rank, lane] = [+key.split('\n')[0], lanes.indexOf(key.split('\n')[1])];
    let row = [], width = 0, line = 0;
    const flush = () => { if (row.length) laneRows[lane].push({rank, line: line++, boxes: row}); row = [], width = 0; };
    for (const box of boxes) {
      if (width + box.width > wide) flush();
      row.push(box);
      width += box.width + BOX.gapX;
    }
    flush();
    heights[rank] = Math.max(heights[rank] || 0, line);
  }
  const tops = [];
  let y = 46;
  for (let rank = 0; rank < heights.length; rank++) {
    tops[rank] = y;
    y += (heights[rank] || 0) * (BOX.height + BOX.gapY * (heights[rank] > 1 ? 0.5 : 1)) + (heights[rank] > 1 ? BOX.gapY / 2 : 0);
  }
  view.lanes = [];
  let left = 0;
  lanes.forEach((lane, i) => {
    const rows = laneRows[i].sort((a, b) => a.rank - b.rank || a.line - b.line);
    const within = box => [...box.inputs.keys()].filter(b => b.lane === lane), after = box => [...box.readers.keys()].filter(b => b.lane === lane);
    for (const row of rows) for (const box of row.boxes) box.middle = undefined;
    for (const row of rows) placeRow(row.boxes, box => average(within(box), 0));
    for (let sweep = 0; sweep < 3; sweep++) {
      for (const row of [...rows].reverse()) placeRow(row.boxes, box => average(after(box), box.middle));
      for (const row of rows) placeRow(row.boxes, box => average(within(box), box.middle));
    }
    let least = Infinity, most = -Infinity;
    for (const row of rows) for (const box of row.boxes) least = Math.min(least, box.middle - box.width / 2), most = Math.max(most, box.middle + box.width / 2);
    const shift = left + BOX.lanePad - least, width = Math.max(most - least, 1.4 * measure.measureText(laneTitle({name: lane})).width) + 2 * BOX.lanePad;
    for (const row of rows) {
      for (const box of row.boxes) {
        box.x = box.middle - box.width / 2 + shift;
        box.y = tops[row.rank] + row.line * (BOX.height + BOX.gapY / 2);
      }
    }
    view.lanes.push({name: lane, x: left, width});
    left += width;
  });
  view.width = left, view.height = y;
}

/* ---- drawing ---- */

const canvas = $('graph'), ink = canvas.getContext('2d');
const edgeWidth = bytes => Math.min(9, 1.5 + Math.log2(1 + bytes / 1024) * 0.55);

function neighbours(box) {
  return box ? new Set([box, ...box.inputs.keys(), ...box.readers.keys()]) : null;
}

function laneTitle(lane) {
  if (lane.name !== 'towers') return lane.name || 'no device';
  const devices = [...new Set(view.graph.nodes.filter(n => n.tower >= 0 && n.op !== 'copy' && laneOf(n) === 'towers').map(n => n.device))].sort((a, b) => a - b).map(d => DATA.devices[d].name);
  const where = devices.length > 2 ? `${devices[0]} … ${devices[devices.length - 1]}` : devices.join(' ');
  return `${DATA.towers} towers as one${where ? ': ' + where : ''}`;
}

function draw() {
  const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio))
    canvas.width = Math.round(w * ratio), canvas.height = Math.round(h * ratio);
  ink.setTransform(ratio, 0, 0, ratio, 0, 0);
  ink.clearRect(0, 0, w, h);
  ink.translate(view.x, view.y);
  ink.scale(view.scale, view.scale);
  const seen = {left: -view.x / view.scale, top: -view.y / view.scale, right: (w - view.x) / view.scale, bottom: (h - view.y) / view.scale};
  drawLanes(seen);
  const near = neighbours(view.selected);
  for (const edge of view.edges) drawEdge(edge, near, seen);
  for (const box of view.boxes)
    if (box.x < seen.right && box.x + box.width > seen.left && box.y < seen.bottom && box.y + BOX.height > seen.top) drawBox(box, near);
  drawTitles(seen);
}

function drawLanes(seen) {
  view.lanes.forEach((lane, i) => {
    ink.fillStyle = i % 2 ? '#f7f9fb' : '#fcfdfe';
    ink.fillRect(lane.x, Math.min(0, seen.top), lane.width, Math.max(view.height, seen.bottom) - Math.min(0, seen.top));
  });
}

/* The devices stay in sight at the top. */
function drawTitles(seen) {
  if (view.lanes.length === 1 && !view.lanes[0].name) return;
  const size = 13 / view.scale;
  ink.fillStyle = '#eef1f5';
  ink.fillRect(seen.left, seen.top, seen.right - seen.left, size * 1.9);
  ink.fillStyle = '#3d4858';
  ink.textAlign = 'center', ink.textBaseline = 'middle';
  ink.font = `600 ${size}px system-ui, sans-serif`;
  for (const lane of view.lanes) ink.fillText(laneTitle(lane), lane.x + lane.width / 2, seen.top + size, lane.width - 8);
}

function drawEdge(edge, near, seen) {
  const x0 = edge.from.x + edge.from.width / 2, y0 = edge.from.y + BOX.height, x1 = edge.to.x + edge.to.width / 2, y1 = edge.to.y;
  if (Math.max(x0, x1) < seen.left || Math.min(x0, x1) > seen.right || Math.max(y0, y1) < seen.top - 80 || Math.min(y0, y1) > seen.bottom + 80) return;
  const chosen = near && (edge.from === view.selected || edge.to === view.selected);
  ink.strokeStyle = edge.crosses ? '#d2562c' : chosen ? '#2b5fb3' : PHASES[edge.from.phase].edge;
  ink.globalAlpha = near && !chosen ? 0.12 : chosen ? 1 : 0.55;
  ink.lineWidth = edge.crosses ? edgeWidth(edge.bytes) : chosen ? 2 : 1.1;
  const bend = Math.max(18, Math.min(90, Math.abs(y1 - y0) * 0.45));
  ink.beginPath();
  ink.moveTo(x0, y0);
  ink.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  ink.stroke();
  if (view.scale > 0.3) {
    ink.beginPath();
    ink.moveTo(x1, y1), ink.lineTo(x1 - 4, y1 - 7), ink.lineTo(x1 + 4, y1 - 7);
    ink.fillStyle = ink.strokeStyle;
    ink.fill();
  }
  ink.globalAlpha = 1;
}

const cut = (text, width) => {
  if (ink.measureText(text).width <= width) return text;
  let n = text.length;
  while (n > 1 && ink.measureText('…' + text.slice(text.length - n)).width > width) n--;
  return '…' + text.slice(text.length - n);
};

function outline(box, by) {
  ink.beginPath();
  ink.roundRect(box.x + by, box.y - by, box.width, BOX.height, box.nodes[0].phase === STATE && !box.folded ? 16 : 6);
}

function drawBox(box, near) {
  ink.globalAlpha = near && !near.has(box) ? 0.3 : 1;
  const phase = PHASES[box.phase], mark = box.mark;
  for (let shadow = Math.min(box.times, 3) - 1; shadow >= 0; shadow--) {
    outline(box, shadow * 3);
    ink.fillStyle = view.times ? heat(box) : phase.color;
    ink.fill();
    ink.lineWidth = box === view.selected ? 3 : mark ? 2.5 : 1;
    ink.strokeStyle = box === view.selected ? '#1c3f80' : mark === 'new' ? '#128a2e' : mark ? '#c07a00' : phase.edge;
    if (shadow === 0 && box.nodes.some(n => n.matches)) ink.strokeStyle = '#c0118f', ink.lineWidth = 3;
    ink.stroke();
  }
  if (view.scale > 0.28) drawLabel(box);
  ink.globalAlpha = 1;
}

function drawLabel(box) {
  ink.fillStyle = '#1b2330';
  ink.textBaseline = 'middle', ink.textAlign = 'left';
  const badge = (box.times > 1 ? `×${box.times}` : '') + (box.folded ? '  +' : '');
  ink.font = '600 13px system-ui, sans-serif';
  const badgeWidth = badge ? ink.measureText(badge).width + 6 : 0;
  ink.fillText(cut(box.label, box.width - 18 - badgeWidth), box.x + 9, box.y + 13);
  ink.font = '12px system-ui, sans-serif';
  ink.fillStyle = '#5a6575';
  ink.fillText(cut(box.below, box.width - 18), box.x + 9, box.y + 29);
  if (!badge) return;
  ink.font = '600 13px system-ui, sans-serif';
  ink.fillStyle = PHASES[box.phase].edge;
  ink.textAlign = 'right';
  ink.fillText(badge, box.x + box.width - 8, box.y + 13);
}

/* ---- what a node is ---- */

const number = n => n.toLocaleString('en');
const bytes = n => n >= 1 << 20 ? `${(n / (1 << 20)).toFixed(1)} MiB` : n >= 1024 ? `${(n / 1024).toFixed(1)} KiB` : `${n} bytes`;

function element(tag, text, into) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (into) into.append(e);
  return e;
}

function pairs(into, list) {
  const dl = element('dl', undefined, into);
  for (const [key, value] of list) if (value !== '' && value !== undefined) element('dt', key, dl), element('dd', value, dl);
}

/* What a trace says of nodes. */
function timed(nodes) {
  if (!view.times) return [];
  const waited = nodes.reduce((sum, n) => sum + (view.times.get(n.name)?.waited || 0), 0);
  return [['time', timeOf(nodes) ? `${duration(timeOf(nodes))} a step` : ''], ['others wait', waited ? `${duration(waited)} a step` : '']];
}

function links(into, title, nodes) {
  if (!nodes.length) return;
  element('h3', `${title} (${nodes.length})`, into);
  for (const n of nodes.slice(0, 40)) {
    const a = element('a', n.name, into);
    a.tabIndex = 0;
    a.onclick = () => show(n);
    a.onkeydown = e => { if (e.key === 'Enter') show(n); };
  }
  if (nodes.length > 40) element('div', `and ${nodes.length - 40} more`, into);
}

/* Each place of an origin, "digits.dsl:9 (nn.dense, nn.dsl:7)", with its line of the source. */
function sources(into, origin) {
  for (const [, file, line] of origin.matchAll(/([^\s(,;]+):(\d+)/g)) {
    const text = DATA.sources[file];
    if (!text) continue;
    element('h3', `${file}:${line}`, into);
    const pre = element('pre', undefined, into), lines = text.split('\n'), at = +line - 1;
    for (let i = Math.max(0, at - 2); i <= Math.min(lines.length - 1, at + 2); i++)
      element(i === at ? 'mark' : 'div', `${String(i + 1).padStart(4)}  ${lines[i]}`, pre);
  }
}

function describe() {
  const into = $('details'), box = view.selected;
  into.replaceChildren();
  if (!box) return overview(into);
  element('h2', box.folded || !box.nodes.includes(view.node) ? box.label : view.node.name, into);
  if (box.folded) return describeLayer(into, box);
  describeNode(into, box, box.nodes.includes(view.node) ? view.node : box.nodes[0]);
}

function describeNode(into, box, n) {
  pairs(into, [['op', n.op], ['type', n.type], ['lies', n.dist + (n.tower >= 0 ? `, tower ${n.tower}` : n.replica >= 0 ? `, replica ${n.replica}` : '')],
               ['phase', PHASES[n.phase].name], ['device', n.device >= 0 ? DATA.devices[n.device].name + (DATA.devices[n.device].simulated ? ' (simulated)' : '') : ''],
               ['because', n.why], ['flops', n.flops ? number(n.flops) : ''], ['result', bytes(n.bytes)], ...timed([n]), ['from', n.origin],
               ['output', view.graph.outputs.filter(o => o.node === n.name).map(o => `${o.role} ${o.name}`).join(', ')]]);
  if (n.line) element('pre', n.line, into).className = 'line';
  sources(into, n.origin);
  links(into, 'inputs', n.inputs);
  links(into, 'readers', n.readers);
  links(into, 'the same in other towers', box.nodes.filter(other => other !== n));
}

function describeLayer(into, box) {
  const ops = new Map(), devices = new Set();
  for (const n of box.nodes) ops.set(n.op, (ops.get(n.op) || 0) + 1), devices.add(n.device);
  pairs(into, [['nodes', number(box.nodes.length)], ['towers', box.times > 1 ? box.times : ''], ['phase', PHASES[box.phase].name],
               ['devices', [...devices].filter(d => d >= 0).map(d => DATA.devices[d].name).join(' ')],
               ['flops', number(box.nodes.reduce((s, n) => s + n.flops, 0))], ['results', bytes(box.nodes.reduce((s, n) => s + n.bytes, 0))], ...timed(box.nodes),
               ['ops', [...ops].sort((a, b) => b[1] - a[1]).slice(0, 12).map(([op, n]) => `${op} ${n}`).join(', ')]]);
  element('button', 'look inside', into).onclick = () => unfold(box);
  sources(into, box.nodes.find(n => n.origin)?.origin.split(' (')[0] || '');
  links(into, 'nodes', box.nodes);
}

function overview(into) {
  const {nodes} = view.graph;
  element('h2', DATA.graph, into);
  pairs(into, [['batch', DATA.batch || ''], ['strategy', DATA.strategy], ['towers', DATA.towers], ['devices', DATA.devices.map(d => d.name + (d.simulated ? ' (simulated)' : '')).join(' ')],
               ['nodes', number(nodes.length)], ['flops', number(nodes.reduce((s, n) => s + n.flops, 0))],
               ['crossing', bytes(nodes.reduce((s, n) => s + (n.op === 'copy' ? n.bytes : 0), 0))], ['dgc', DATA.version]]);
  const rows = view.graph.outputs.filter(o => o.role !== 'update').map(o => view.graph.byName.get(o.node)).filter(Boolean);
  links(into, 'outputs', [...new Set(rows)]);
  element('p', 'Click a box for what it is, twice to look inside. ? shows the keys.', into);
}

/* ---- memory over the step ---- */

const PURPOSE_COLORS = ['#f0d878', '#e6c24a', '#c9d0d9', '#a8d0f0', '#6da4e0', '#e79a74', '#86c68a', '#c7a6e8'];

function drawMemory() {
  const into = $('memory');
  into.replaceChildren();
  if (!DATA.memory.length) return void element('p', 'nothing is known of the memory of this plan', into);
  DATA.memory.forEach((device, d) => drawDeviceMemory(into, device, DATA.devices[d]));
  const legend = element('p', undefined, into);
  DATA.purposes.forEach((p, i) => {
    const mark = element('span', ` ■ ${p} `, legend);
    mark.style.color = PURPOSE_COLORS[i];
  });
}

function drawDeviceMemory(into, device, about) {
  const steps = Math.max(device.steps.length, 1), layers = DATA.purposes.map(() => new Float64Array(steps + 1));
  for (const [, purpose, first, last, size] of device.buffers) layers[purpose][first] += size, layers[purpose][Math.min(last, steps - 1) + 1] -= size;
  const total = new Float64Array(steps);
  for (const layer of layers) {
    for (let i = 1; i < steps; i++) layer[i] += layer[i - 1];
    for (let i = 0; i < steps; i++) total[i] += layer[i];
  }
  const peak = total.reduce((a, b) => Math.max(a, b), 1), at = total.indexOf(peak);
  const title = element('p', '', into), chart = element('canvas', undefined, into);
  const say = i => { title.textContent = `${about.name}: step ${i} of ${steps}, ${TEXT[device.steps[i]] || ''}: ${bytes(total[i])} in use; most at step ${at}: ${bytes(peak)}`; };
  say(at);
  const w = chart.width = Math.max(300, into.clientWidth - 24), h = chart.height = 90, pen = chart.getContext('2d');
  const base = new Float64Array(steps);
  layers.forEach((layer, purpose) => {
    pen.fillStyle = PURPOSE_COLORS[purpose];
    for (let i = 0; i < steps; i++) {
      const x = Math.floor(i * w / steps), right = Math.max(x + 1, Math.floor((i + 1) * w / steps)), y = h - base[i] / peak * (h - 4), height = layer[i] / peak * (h - 4);
      pen.fillRect(x, y - height, right - x, height);
      base[i] += layer[i];
    }
  });
  const step = e => Math.min(steps - 1, Math.max(0, Math.floor(e.offsetX / chart.clientWidth * steps)));
  chart.onmousemove = e => say(step(e));
  chart.onclick = e => {
    const name = (TEXT[device.steps[step(e)]] || '').split(' ').pop(), n = view.graph.byName.get(name);
    if (n) show(n);
  };
}

/* ---- moving about ---- */

function fit() {
  const w = canvas.clientWidth, h = canvas.clientHeight;
  view.scale = Math.min(1.25, Math.max(0.02, Math.min(w / (view.width + 20), h / (view.height + 20))));
  /* A tall graph begins at its top, where it can be read. */
  if (view.scale < 0.45 && view.width * 0.45 < w) view.scale = Math.min(0.8, w / (view.width + 20));
  view.x = (w - view.width * view.scale) / 2;
  view.y = view.height * view.scale < h ? (h - view.height * view.scale) / 2 : 0;
  view.fitted = place();
  draw();
}

/* Which part of the graph is seen, and how large. */
function place() { return [view.scale, view.x, view.y].join(); }

function zoom(by, x, y) {
  const scale = Math.min(3, Math.max(0.02, view.scale * by));
  view.x = x - (x - view.x) * scale / view.scale;
  view.y = y - (y - view.y) * scale / view.scale;
  view.scale = scale;
  draw();
}

function center(box) {
  if (view.scale < 0.75) view.scale = 0.9;
  view.x = canvas.clientWidth / 2 - (box.x + box.width / 2) * view.scale;
  view.y = canvas.clientHeight / 2 - (box.y + BOX.height / 2) * view.scale;
}

function status() {
  const folded = view.boxes.filter(b => b.folded).length;
  $('status').textContent = `${number(view.graph.nodes.length)} nodes in ${number(view.boxes.length)} boxes, ${number(folded)} of them folded; ` +
    `${number(view.edges.length)} edges, ${number(view.edges.filter(e => e.crosses).length)} cross devices`;
}

/* Boxes anew, with the same node under the eye. */
function rebuild(keep) {
  const held = keep || view.node, before = held?.box && {x: held.box.x, y: held.box.y};
  makeBoxes();
  layout();
  markChanges();
  measureBoxes();
  view.node = held && view.graph.nodes.includes(held) ? held : null;
  view.selected = view.node ? view.node.box : null;
  if (held?.box && before && before.x !== undefined && view.graph.nodes.includes(held)) {
    view.x += (before.x - held.box.x) * view.scale;
    view.y += (before.y - held.box.y) * view.scale;
  }
  describe();
  status();
  remember();
  draw();
}

function select(box) {
  view.selected = box;
  view.node = box ? box.nodes[0] : null;
  describe();
  remember();
  draw();
}

function unfold(box) {
  if (!box?.folded) return;
  view.open.add(box.key);
  rebuild(box.nodes.includes(view.node) ? view.node : box.nodes[0]);
}

function fold(box) {
  if (!box) return;
  const layers = box.nodes[0].layers.filter(layer => view.open.has(layer) && layer !== box.key);
  if (!layers.length) return;
  const inner = layers[layers.length - 1];
  for (const layer of [...view.open]) if (layer === inner || layer.startsWith(inner + '.')) view.open.delete(layer);
  rebuild(box.nodes[0]);
}

/* Unfolds what a node is in, selects it, brings it into sight. */
function show(n) {
  for (const layer of n.layers) view.open.add(layer);
  rebuild(n);
  center(n.box);
  draw();
}

/* ---- passes ---- */

function setPass(index, keep) {
  const name = view.node?.name;
  view.pass = Math.min(DATA.passes.length - 1, Math.max(0, index));
  view.graph = graphOf(view.pass);
  $('pass').value = view.pass;
  $('pass-name').textContent = DATA.passes[view.pass].pass;
  $('pass-name').title = $('pass').title = DATA.passes[view.pass].help;
  view.selected = view.node = null;
  search($('search').value);
  rebuild(keep && name ? view.graph.byName.get(name) : undefined);
}

/* From now on, boxes show what the pass has changed. Passes make graphs of many sizes: who has not chosen a part, or has chosen a
 * node that the pass does not have, sees all of it. */
function turnPass(index) {
  const whole = view.fitted === place(), chosen = view.node;
  view.changes = true;
  setPass(index, true);
  if (whole || (chosen && !view.node)) fit();
}

/* Against the pass before: nodes that are new, or are not what they were. */
function markChanges() {
  const before = view.pass ? DATA.passes[view.pass - 1].nodes : null, old = new Map();
  if (before) for (const record of before) old.set(DATA.records[record][0], record);
  let added = 0, changed = 0, kept = 0;
  for (const box of view.boxes) box.mark = null;
  for (const n of view.graph.nodes) {
    const was = before ? old.get(DATA.records[n.record][0]) : n.record;
    if (was === undefined) added++;
    else kept++;
    if (was !== undefined && was !== n.record) changed++;
    /* Where every node gets something, as in placement, colour says nothing. */
    if (!view.changes) continue;
    if (was === undefined) n.box.mark = 'new';
    else if (was !== n.record && !n.box.mark) n.box.mark = 'changed';
  }
  if (view.boxes.every(box => box.mark)) for (const box of view.boxes) box.mark = null;
  $('changes').textContent = before ? `+${number(added)}  −${number(before.length - kept)}  ~${number(changed)}` : '';
  $('changes').title = 'nodes that are new, gone, changed by this pass';
}

/* ---- search ---- */

function search(text) {
  const word = text.trim().toLowerCase();
  view.matches = [], view.match = -1;
  for (const n of view.graph.nodes) {
    const device = n.device >= 0 ? DATA.devices[n.device].name : '';
    n.matches = word !== '' && (n.name.toLowerCase().includes(word) || n.op === word || device === word);
    if (n.matches) view.matches.push(n);
  }
  $('search').title = word ? `${view.matches.length} nodes` : '';
}

function nextMatch() {
  if (!view.matches.length) return;
  view.match = (view.match + 1) % view.matches.length;
  show(view.matches[view.match]);
}

/* ---- a trace: how long nodes take ---- */

/* Microseconds of a step by node: its own, and those in which others wait for it. */
function timesOf(trace) {
  const times = new Map(), of = name => times.get(name) || times.set(name, {own: 0, waited: 0}).get(name);
  let steps = 0;
  for (const e of trace.traceEvents) {
    if (e.ph !== 'X') continue;
    if (e.cat === 'step') steps += e.name === 'train' || !DATA.graph.endsWith('.train') ? 1 : 0;
    else if (e.cat === 'wait') of(e.args.for).waited += e.dur;
    else if (!['input', 'checkpoint', 'evaluation'].includes(e.cat)) of(e.name).own += e.dur;
  }
  for (const t of times.values()) t.own /= steps || 1, t.waited /= steps || 1;
  return times;
}

const duration = us => us >= 1000 ? `${(us / 1000).toFixed(2)} ms` : `${us.toFixed(1)} µs`;
const timeOf = nodes => nodes.reduce((sum, n) => sum + (view.times.get(n.name)?.own || 0), 0);

/* From nearly white to red, by the share of the box that takes longest. */
function heat(box) {
  const share = view.longest ? Math.sqrt(timeOf(box.nodes) / view.longest) : 0;
  return `hsl(${50 - 45 * share} 90% ${97 - 42 * share}%)`;
}

function measureBoxes() {
  view.longest = view.times ? view.boxes.reduce((most, box) => Math.max(most, timeOf(box.nodes)), 0) : 0;
}

/* The kernels of a trace are the nodes of the last pass. */
function loadTrace(text) {
  let trace;
  try {
    trace = JSON.parse(text);
  } catch (error) {
    trace = null;
  }
  if (!Array.isArray(trace?.traceEvents)) return void ($('status').textContent = 'this is no trace: dgc train --trace FILE writes one');
  view.times = timesOf(trace);
  setPass(DATA.passes.length - 1);
  fit();
  const known = view.graph.nodes.filter(n => view.times.has(n.name)).length;
  $('status').textContent += `; ${number(known)} of them in the trace`;
}

/* ---- hands ---- */

function boxAt(e) {
  const x = (e.offsetX - view.x) / view.scale, y = (e.offsetY - view.y) / view.scale;
  return view.boxes.find(b => x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + BOX.height) || null;
}

/* The nearest box in a direction, those that it is joined to first. */
function step(dx, dy) {
  if (!view.selected) return select(view.boxes.find(b => b.rank === 0) || view.boxes[0]);
  const from = view.selected, joined = neighbours(from);
  let best = null, least = Infinity;
  for (const box of view.boxes) {
    const x = box.x + box.width / 2 - from.x - from.width / 2, y = box.y - from.y, along = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
    if (box === from || along <= 4) continue;
    const far = along + 2 * aside + (joined.has(box) ? 0 : 600);
    if (far < least) least = far, best = box;
  }
  if (!best) return;
  select(best);
  const x = best.x * view.scale + view.x, y = best.y * view.scale + view.y;
  if (x < 0 || y < 0 || x + best.width * view.scale > canvas.clientWidth || y + BOX.height * view.scale > canvas.clientHeight) center(best), draw();
}

function toggleMerged(on) {
  view.merged = $('merged').checked = on;
  view.open.clear();
  rebuild();
  fit();
}

function toggleMemory() {
  $('memory').hidden = !$('memory').hidden;
  if (!$('memory').hidden) drawMemory();
  draw();
}

const KEYS = {
  ArrowUp: () => step(0, -1), ArrowDown: () => step(0, 1), ArrowLeft: () => step(-1, 0), ArrowRight: () => step(1, 0),
  Enter: () => unfold(view.selected), Backspace: () => fold(view.selected), Escape: () => select(null),
  '[': () => turnPass(view.pass - 1), ']': () => turnPass(view.pass + 1), '/': () => $('search').focus(),
  '+': () => zoom(1.25, canvas.clientWidth / 2, canvas.clientHeight / 2), '-': () => zoom(0.8, canvas.clientWidth / 2, canvas.clientHeight / 2),
  0: fit, t: () => toggleMerged(!view.merged), m: toggleMemory, '?': () => $('help').showModal(),
};

function listen() {
  document.addEventListener('keydown', e => {
    const field = e.target.tagName === 'INPUT' || e.target.tagName === 'A' || e.target.tagName === 'BUTTON';
    if (e.target === $('search') && e.key === 'Enter') return nextMatch();
    if (e.target === $('search') && e.key === 'Escape') return canvas.focus();
    if (field || e.ctrlKey || e.metaKey || e.altKey || $('help').open || !(e.key in KEYS)) return;
    e.preventDefault();
    KEYS[e.key]();
  });
  let drag = null, moved = false;
  canvas.onpointerdown = e => { drag = {x: e.clientX - view.x, y: e.clientY - view.y}, moved = false, canvas.setPointerCapture(e.pointerId), canvas.focus(); };
  canvas.onpointermove = e => {
    if (!drag) return void (canvas.style.cursor = boxAt(e) ? 'pointer' : 'grab');
    const x = e.clientX - drag.x, y = e.clientY - drag.y;
    moved = moved || Math.abs(x - view.x) + Math.abs(y - view.y) > 4;
    if (moved) view.x = x, view.y = y, draw();
  };
  canvas.onpointerup = e => { if (drag && !moved) select(boxAt(e)); drag = null; };
  canvas.ondblclick = e => { const box = boxAt(e); if (box?.folded) unfold(box); else fold(box); };
  canvas.addEventListener('wheel', e => { e.preventDefault(); zoom(Math.exp(-e.deltaY * 0.0015), e.offsetX, e.offsetY); }, {passive: false});
  $('pass').oninput = e => turnPass(+e.target.value);
  $('search').oninput = e => { search(e.target.value); draw(); };
  $('merged').onchange = e => toggleMerged(e.target.checked);
  $('trace').onchange = e => e.target.files[0]?.text().then(loadTrace);
  $('fold').onclick = () => { view.open.clear(); rebuild(); fit(); };
  $('fit').onclick = fit;
  $('keys').onclick = () => $('help').showModal();
  new ResizeObserver(draw).observe(canvas);
}

/* ---- the address remembers ---- */

function remember() {
  const state = new URLSearchParams({pass: DATA.passes[view.pass].pass});
  if (!view.merged) state.set('towers', 'apart');
  if (view.selected && !view.selected.folded) state.set('select', view.node.name);
  if (location.protocol !== 'about:') history.replaceState(null, '', '#' + state); // a frame of a notebook has no address
}

function start() {
  const state = new URLSearchParams(location.hash.slice(1)), placed = DATA.passes.findIndex(p => p.pass === 'copies');
  const asked = DATA.passes.findIndex(p => p.pass === state.get('pass'));
  const select = state.get('select'), word = state.get('search');
  $('title').textContent = DATA.graph;
  $('pass').max = DATA.passes.length - 1;
  if (DATA.towers < 2) $('merged').parentNode.hidden = true;
  for (const phase of PHASES) {
    const mark = element('span', undefined, $('legend'));
    element('i', undefined, mark).style.background = phase.color;
    mark.append(phase.name);
  }
  view.merged = $('merged').checked = state.get('towers') !== 'apart';
  if (word) $('search').value = word;
  setPass(asked >= 0 ? asked : placed >= 0 ? placed : DATA.passes.length - 1);
  const open = state.get('open');
  if (open) {
    for (const n of view.graph.nodes) for (const layer of n.layers) if (open === '*' || open.split(',').includes(layer.split('|')[2])) view.open.add(layer);
    rebuild();
  }
  listen();
  fit();
  if (state.has('memory')) toggleMemory();
  if (select && view.graph.byName.has(select)) show(view.graph.byName.get(select));
  else if (word) nextMatch();
  canvas.focus();
}
start();
