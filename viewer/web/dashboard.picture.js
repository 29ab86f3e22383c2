'use strict';
// The panel with the picture: the picture itself, the scale of its values, the values under the mouse or the mark, and the choice of ring and plane.
// This file follows dashboard.js in one script, and uses its el, $, post and span.
const pixelEveryMs = 120, streamPatienceMs = 3000;
const live = $('live');
let streamSince = 0;
function stream() {
  streamSince = performance.now();
  live.src = document.hidden ? 'data:,' : `/stream.mjpg?viewer=${viewer}&t=${Date.now()}`;
}
document.addEventListener('visibilitychange', stream);
/// An image fires no event when its stream ends cleanly, for example with the server's process. The server reports whether this viewer has a stream.
function checkStream(p) {
  if (document.hidden || p.stream_open || performance.now() - streamSince < streamPatienceMs) return;
  if (p.watchers < p.most_watchers) return stream();
  streamSince = performance.now();
  live.src = '/snapshot.png?' + Date.now();
}

function pictureName(p) { return `${p.stage} ${p.plane} ${p.type} · frame ${p.frame.toLocaleString('en-US')}`; }

/// The colour scales, one part per picture with the picture's share of the width.
function scales(shown) {
  $('scales').hidden = shown.length === 0 || (shown.length === 1 && shown[0].values === null);
  if ($('scales').hidden) return $('scales').replaceChildren();
  $('scales').replaceChildren(...shown.map(p => {
    const v = p.values, parts = [el('b', {title: pictureName(p)}, pictureName(p))];
    if (v) {
      if (v.ramp.length) parts.push(el('span', {}, v.low_text), el('span', {class: 'bar', style: `background:linear-gradient(to right,${v.ramp.join(',')})`}),
        el('span', {}, v.high_text));
      if (v.nan + v.infinite > 0) parts.push(el('span', {class: 'none', title: 'NaN and the infinities have this colour'}));
      if (v.beyond) parts.push(el('span', {}, v.beyond));
    }
    return el('div', {class: 'scale', style: `flex:${p.width * p.zoom} 1 0`}, ...parts);
  }));
}

/// A drop-down list; the chosen line is posted under `key`.
function choice(label, key, lines, now) {
  const list = el('select', {'data-request': key});
  for (const line of lines) {
    const o = el('option', {value: line}, line === '' ? 'none' : line);
    o.selected = line === now;
    list.append(o);
  }
  return el('label', {}, label, list);
}

/// The controls for the range of values, with two numbers if it is fixed.
function rangeChoice(key, request) {
  const fixed = request.includes('..'), parts = [choice('range', key, ['auto', 'extremes', 'fixed'], fixed ? 'fixed' : request)];
  if (!fixed) return parts;
  const [low, high] = request.split('..');
  for (const [which, value] of [['low', low], ['high', high]])
    parts.push(el('input', {type: 'number', step: 'any', value, 'data-range': key, 'data-end': which, 'aria-label': `${which} end of the range`}));
  return parts;
}

/// The controls for linear light: the exposure, in stops, and the tone map.
function lightChoice(prefix, request) {
  const key = prefix + 'exposure', stops = Number(request[key]);
  return [el('label', {}, 'exposure', el('input', {type: 'range', min: -10, max: 10, step: 0.5, value: stops, 'data-request': key}),
    `${stops < 0 ? '−' : '+'}${Math.abs(stops)} EV`), choice('tone map', prefix + 'tone_map', ['neutral', 'aces', 'linear'], request[prefix + 'tone_map'])];
}

let requestShown = '', shownNow = [];
function controls(s) {
  const p = s.picture, rings = s.rings.map(r => r.stage), shown = p.shown;
  const key = JSON.stringify([rings, p.request, s.may_act, shown.map(x => [x.stage, x.plane, x.planes, x.values && x.values.colours])]);
  const set = $('picture-set');
  set.hidden = rings.length === 0;
  if (key === requestShown || (document.activeElement && document.activeElement.dataset.range)) return;   // the user is typing
  requestShown = key;
  const row = (x, prefix) => !x ? [] : [choice('plane', prefix + 'plane', x.planes, x.plane),
    ...(x.channels.length ? [choice('channel', prefix + 'channel', ['all', ...x.channels], p.request[prefix + 'channel'])] : []),
    ...(x.values && x.values.ramp.length ? rangeChoice(prefix + 'range', p.request[prefix + 'range']) : []),
    ...(x.values && x.values.colours === 'light' ? lightChoice(prefix, p.request) : []),
    ...(x.values ? [choice('colours', prefix + 'colours', ['auto', ...x.maps], p.request[prefix + 'colours'])] : [])];
  const first = shown[0], second = p.request.compare ? shown[1] : null;
  // The command that started the dashboard may have used another of the ring's names.
  const own = (request, ring) => rings.includes(request) || !ring ? request : ring.stage;
  const focused = set.contains(document.activeElement) ? {...document.activeElement.dataset} : null;
  const rows = [el('div', {class: 'request'}, choice('ring', 'stage', rings, own(p.request.stage, first)), ...row(first, ''),
    choice('compare with', 'compare', ['', ...rings], own(p.request.compare, second)))];
  if (second) rows.push(el('div', {class: 'request'}, second.stage, ...row(second, 'compare_')));
  set.replaceChildren(...rows);
  if (focused && focused.request) (set.querySelector(`[data-request=${focused.request}]`) || set.querySelector('select')).focus({preventScroll: true});
  set.disabled = !s.may_act;
  set.title = s.may_act ? '' : 'open the address with the token, which was printed when the web UI was started';
}
document.addEventListener('change', e => {
  const d = e.target.dataset || {};
  if (d.request) {
    let value = e.target.value;
    if (value === 'fixed') {
      const of = shownNow[d.request.startsWith('compare') ? 1 : 0].values;
      value = `${of.low}..${of.high > of.low ? of.high : of.low + 1}`;
    }
    post('/picture', JSON.stringify({[d.request]: value}));
  }
  if (d.range) {
    const end = which => document.querySelector(`[data-range=${d.range}][data-end=${which}]`).value;
    if (Number(end('low')) < Number(end('high'))) post('/picture', JSON.stringify({[d.range]: `${end('low')}..${end('high')}`}));
  }
});

const pointer = {at: null, busy: false};   // at: shares of the picture's width and height
/// Shows the value under the mouse, and names its frame: the one that the server holds at that time.
async function askPixel() {
  if (pointer.busy || !pointer.at || !live.naturalWidth) return;
  pointer.busy = true;
  const [x, y] = [live.naturalWidth, live.naturalHeight].map((size, k) => Math.floor(pointer.at[k] * size));
  try {
    const p = await (await fetch(`/pixel.json?x=${Math.max(0, x)}&y=${Math.max(0, y)}`)).json();
    $('pixel').textContent = p && pointer.at ? `x ${p.x} y ${p.y} of ${p.stage} ${p.plane}: ${p.text} · frame ${p.frame.toLocaleString('en-US')}` : '';
  } catch (e) { /* poll() reports it */ }
  pointer.busy = false;
}
live.addEventListener('mousemove', e => {
  const box = live.getBoundingClientRect();
  $('probe').hidden = true;
  pointer.at = [(e.clientX - box.left) / box.width, (e.clientY - box.top) / box.height];
});
live.addEventListener('mouseleave', () => hidePixel());
function hidePixel() {
  pointer.at = null;
  $('probe').hidden = true;
  $('pixel').textContent = '';
}
/// With the keyboard: the arrow keys move a mark over the picture, with Shift in larger steps.
const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
live.addEventListener('keydown', e => {
  if (e.key === 'Escape') hidePixel();
  const move = moves[e.key], size = [live.naturalWidth, live.naturalHeight];
  if (!move || !size[0]) return;
  e.preventDefault();
  const step = e.shiftKey ? 20 : 1;
  pointer.at = (pointer.at || [0.5, 0.5]).map((v, k) => Math.min(1 - 0.5 / size[k], Math.max(0, v + move[k] * step / size[k])));
  $('probe').hidden = false;
  $('probe').style.cssText = `left:${pointer.at[0] * live.clientWidth}px;top:${live.offsetTop + pointer.at[1] * live.clientHeight}px`;
});
live.addEventListener('blur', hidePixel);
setInterval(askPixel, pixelEveryMs);

function picture(s) {
  const p = s.picture;
  shownNow = p.shown;
  $('picture-about').textContent = p.frame === null ? '' : `frame ${p.frame.toLocaleString('en-US')} of ${p.stage} · ${p.width} × ${p.height} pixels`
    + (p.age_s > 1 ? ` · ${span(p.age_s)} old` : '');
  const full = !p.stream_open && p.watchers >= p.most_watchers;
  const why = s.phase === 'running' && p.problem ? p.problem : p.frame === null ? 'no picture yet'
    : full ? `${p.watchers} viewers receive the live picture, which is the limit: showing a snapshot every ${streamPatienceMs / 1000} s until one of them closes` : '';
  $('no-picture').hidden = why === '';
  $('no-picture').textContent = why;
  scales(p.shown);
  controls(s);
  $('picture-note').hidden = p.note === '';
  $('picture-note').textContent = p.note;
  const several = p.shown.length > 1, facts = p.shown.flatMap(x => x.carries.map(c => [several ? `${x.stage}: ${c.name}` : c.name, c.value]));
  $('carries').hidden = facts.length === 0;
  $('carries').replaceChildren(...facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));
}
