'use strict';
const $ = id => document.getElementById(id);
const dark = matchMedia('(prefers-color-scheme: dark)');
const palette = () => dark.matches ? ['#56b4e9', '#e69f00', '#3dbb8f', '#cc79a7', '#f0e442', '#f07240', '#8c9eff', '#b8bec7']
  : ['#00629b', '#965f00', '#00694b', '#a84c81', '#776e00', '#a84000', '#3f51b5', '#59626e'];
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const pollTimeoutMs = 4000, actionTimeoutMs = 15000;
const slotStates = [['free', 'free'], ['fill', 'being filled'], ['ready', 'ready'], ['leased', 'leased by a reader'], ['done', 'read by all'],
  ['quarantined', 'quarantined: its writer died']];

// The token is removed from the address at once: addresses are copied, photographed and stored in histories.
let token = sessionStorage.getItem('carousel-token') || '';
const given = new URLSearchParams(location.search).get('token');
if (given) {
  token = given;
  sessionStorage.setItem('carousel-token', token);
  history.replaceState(null, '', '/');
}

/// The name of this page for the server, which uses it to report whether the page receives the live picture.
const viewer = [...crypto.getRandomValues(new Uint8Array(8))].map(b => b.toString(16).padStart(2, '0')).join('');

function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) k === 'class' ? e.className = v : e.setAttribute(k, v);
  e.append(...children);
  return e;
}
const number = v => v === null || v === undefined ? '–' : v >= 1000 ? Math.round(v).toLocaleString('en-US') : v >= 100 ? v.toFixed(0)
  : v >= 10 ? v.toFixed(1) : v >= 0.1 || v === 0 ? v.toFixed(2) : v.toPrecision(2);
const percent = v => v === null ? '–' : (v * 100).toFixed(0);
const span = s => s === null ? '–' : s < 1 ? (s * 1000).toFixed(0) + ' ms' : s < 60 ? s.toFixed(s < 10 ? 1 : 0) + ' s'
  : s < 3600 ? Math.floor(s / 60) + ' min ' + Math.floor(s % 60) + ' s' : Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
const bytes = v => v === null ? '–' : v >= 1e9 ? number(v / 1e9) + ' GB' : v >= 1e6 ? number(v / 1e6) + ' MB' : v >= 1e3 ? number(v / 1e3) + ' kB' : number(v) + ' B';

function figures(p) {
  const list = [[number(p.frames_per_second), 'frames/s'], [number(p.end_to_end_p50_ms), 'ms end to end, p50'], [number(p.end_to_end_p99_ms), 'ms, p99'],
    ...(p.from_capture_p50_ms === null ? [] : [[number(p.from_capture_p50_ms), 'ms from capture, p50'], [number(p.from_capture_p99_ms), 'ms, p99']]),
    [p.frames.toLocaleString('en-US'), 'frames delivered'], [p.restarts, p.restarts === 1 ? 'restart' : 'restarts'], [span(p.age_s), 'since start']];
  $('figures').replaceChildren(...list.map(([v, unit]) => el('div', {}, el('dt', {}, unit), el('dd', {}, String(v)))));
}

function banner(c) {
  const show = c !== null && (c.back_after_s === null || c.age_s < 20);
  $('banner').hidden = !show;
  if (!show) return;
  $('banner').classList.toggle('back', c.back_after_s !== null);
  $('banner').classList.toggle('asked', c.asked !== null && c.back_after_s === null);
  $('banner').textContent = c.text + (c.back_after_s === null ? `; ${c.follows}.`
    : `. Back as pid ${c.new_pid} after ${c.back_after_s < 0.01 ? 'less than 10 ms' : 'about ' + span(c.back_after_s)}.`);
}

/// Green only while frames move: a run whose frames wait for one stage is not healthy, even if all other stages run.
function pill(s) {
  const p = s.pipeline, state = p && s.phase === 'running' ? p.state : s.phase;
  const slow = p && p.frames_per_second_wanted > 0 && p.frames_per_second_wanted < 1;   // rates are averages of 2 s
  const still = state === 'running' && (p.hindrance !== '' || (p.frames > 0 && p.frames_per_second === 0 && !slow));
  $('phase').className = 'pill ' + (still ? 'still' : state);
  $('phase').textContent = still ? 'no frames' : p && s.phase === 'running' ? p.state_text : s.phase;
  $('phase').title = p ? p.hindrance : '';
}
function problems(list) {
  $('problems').hidden = list.length === 0;
  $('problems').replaceChildren(...list.map(text => el('li', {}, text)));
}

let runShown = '';   // actions reach this run or none
let refusalUntil = 0;
/// Shows for some seconds why an action was not done.
function refused(why) {
  $('may-act').textContent = why;
  refusalUntil = performance.now() + 6000;
  return why;
}
/// Posts an action on a run. Returns '' if it was done, else the sentence that is shown.
async function post(path, body, run = runShown) {
  try {
    const reply = await fetch(path, {method: 'POST', headers: {'X-Carousel-Token': token, 'X-Carousel-Run': run}, body,
      signal: AbortSignal.timeout(actionTimeoutMs)});
    if (reply.ok) return '';
    const text = await reply.text();
    return refused((reply.headers.get('Content-Type') || '').includes('json') ? JSON.parse(text).message : text.trim());
  } catch (e) { return refused('the server of this web UI does not answer'); }
}

/// Why no action can be carried out now; '' if it can.
const readOnly = 'read-only (--read-only): no command is sent to the run';
const whyNoAction = s => s.read_only ? readOnly : !s.may_act ? 'open the address with the token, which was printed when the web UI was started'
  : s.phase !== 'running' ? 'no pipeline is running' : s.pipeline.state === 'unsupervised' ? 'no supervisor controls the run: start it again to adopt the stages' : '';
const isDown = process => process !== null && ['down', 'failed'].includes(process.state);
function buttons(process, why) {
  const paused = process.paused;
  const actions = isDown(process) ? [['up', 'start the stage']] : [['kill', 'kill the process with SIGKILL: the stage is restarted, no frame is lost'],
    paused ? ['cont', 'continue the stage'] : ['stop', 'pause the stage: the pipeline waits'], ['restart', 'end the process and start the current program from disk']];
  return actions.map(([verb, what]) => {
    const b = el('button', {type: 'button', title: why || what, 'data-verb': verb, 'data-stage': process.label, 'aria-label': `${verb} ${process.label}`}, verb);
    b.disabled = why !== '';
    return b;
  });
}

/// What an action does that stops or ends a process; the user confirms it.
const effects = {kill: 'Its process is ended with SIGKILL and replaced.', stop: 'The pipeline waits until the stage continues.',
  restart: 'Its process is ended, and the program on disk takes over.'};
let confirmed = null;   // what the open question is about
function ask(text, word, action) {
  confirmed = action;
  $('confirm-text').textContent = text;
  $('confirm-yes').textContent = word;
  $('confirm-yes').disabled = $('confirm-no').disabled = false;   // lost() disables all buttons
  $('confirm').showModal();   // Escape closes it; then the focus returns to the button that opened it
  $('confirm-no').focus();
}
$('confirm').addEventListener('close', () => { confirmed = null; });
$('confirm-no').addEventListener('click', () => $('confirm').close());
$('confirm-yes').addEventListener('click', () => {
  const action = confirmed;
  $('confirm').close();
  if (action) action();
});
function act({verb, stage}) {
  const run = runShown, send = () => post(`/stages/${encodeURIComponent(stage)}/${verb}`, undefined, run);
  effects[verb] ? ask(`${verb} ${stage}? ${effects[verb]}`, `${verb} ${stage}`, send) : send();
}
document.addEventListener('click', e => {
  const d = e.target.dataset || {};
  if (d.verb) act(d);
  if (d.run) post(`/runs/${encodeURIComponent(d.run)}/watch`);
  if (e.target.id === 'parameters-reset') ask('Reset all parameters to their initial values?', 'reset', resetParameters);
});

let noticeShown = '';
function notice(s) {
  const key = JSON.stringify([s.notice, s.choices, s.may_act]);   // the button elements are kept: a click must not fall between an old and a new one
  if (key === noticeShown) return;
  noticeShown = key;
  $('notice').hidden = s.notice === '';
  $('notice').replaceChildren(s.notice, ...s.choices.map(r => {
    const b = el('button', {type: 'button', 'data-run': r.name, title: `pid ${r.pid}${r.file ? ', ' + r.file : ''}`}, `watch ${r.name}`);
    b.disabled = !s.may_act;
    return b;
  }));
}

/// The column titles, for narrow windows, where each row is a card.
const columns = [...$('rows').parentNode.tHead.rows[0].cells].map(th => th.innerHTML.replace('<br>', ' '));
const cell = (text, c) => el('td', {class: c || 'n'}, text);
const hostStates = {running: 's-running', ended: 's-down', lost: 's-failed', refused: 's-failed'};
/// The row of another host of the pipeline, above its stages.
function hostRow(h) {
  return el('tr', {class: 'host'}, el('td', {colspan: String($('rows').parentNode.tHead.rows[0].cells.length)},
    el('b', {class: hostStates[h.state] || 's-starting'}, `host ${h.name}`), h.text.slice(`host ${h.name}`.length)));
}
/// A process of another host, from its supervisor's report. Latencies are counted in that host's control block.
function remoteRow(p) {
  const exit = p.last_exit || '–';
  return el('tr', {class: 'remote'}, el('td', {}, p.label), cell(p.state, 's-' + p.state), cell(p.pid === null ? '–' : String(p.pid)), cell(span(p.age_s)),
    cell(String(p.restarts)), el('td', {class: 'exit', title: exit}, exit), cell(number(p.frames_per_second)),
    ...[p.busy, p.wait_input, p.wait_output, p.wait_own, p.wait_turn].map(v => cell(percent(v))), cell('–'), cell('–'),
    cell(p.cpu_percent === null ? '–' : p.cpu_percent.toFixed(0)), cell(p.memory_bytes === null ? '–' : (p.memory_bytes / 1e6).toFixed(0)),
    el('td', {class: 'n actions'}));
}

/// Gives the focus to the same button of the new rows, or to the first one of that stage.
function refocus(focused, why) {
  if (focused === null || why !== '') return;
  const same = [...document.querySelectorAll('#rows button')].filter(b => b.dataset.stage === focused[1]);
  const b = same.find(x => x.dataset.verb === focused[0]) || same[0];
  if (b) b.focus({preventScroll: true});
}

let rowsShown = '';
function stages(s) {
  const colors = palette(), rows = [];
  s.stages.forEach((stage, k) => stage.processes.forEach(p => {
    const exit = p.last_exit || '–';
    rows.push(el('tr', {}, el('td', {}, el('span', {class: 'dot', style: `background:${colors[k % colors.length]}`}), p.label), cell(p.state, 's-' + p.state),
      cell(p.pid === null ? '–' : String(p.pid)), cell(span(p.age_s)), cell(String(p.restarts)), el('td', {class: 'exit', title: exit}, exit),
      cell(number(stage.frames_per_second)), cell(percent(stage.busy)), cell(percent(stage.wait_input)), cell(percent(stage.wait_output)), cell(percent(stage.wait_own)), cell(percent(stage.wait_turn)),
      cell(number(stage.latency_p50_ms)), cell(number(stage.latency_p99_ms)), cell(p.cpu_percent === null ? '–' : p.cpu_percent.toFixed(0)),
      cell(p.memory_bytes === null ? '–' : (p.memory_bytes / 1e6).toFixed(0)), el('td', {class: 'n actions'})));
  }));
  const flat = s.stages.flatMap(x => x.processes);
  for (const h of s.hosts) {
    rows.push(hostRow(h));
    flat.push(null);
    h.stages.forEach(p => rows.push(remoteRow(p)) && flat.push(p));
  }
  for (const r of rows) if (r.cells.length === columns.length) [...r.cells].forEach((c, k) => { c.dataset.label = columns[k]; });
  // The cells with buttons stay in the document while their processes stay: a click, a pressed key or the focus must not be lost between
  // an old and a new button.
  const why = whyNoAction(s), key = JSON.stringify([why, flat.map(p => p && [p.label, p.paused, isDown(p)])]);
  const old = [...$('rows').children];
  if (key === rowsShown && old.length === rows.length) {
    rows.forEach((r, k) => [...r.cells].forEach((c, at) => { if (!c.classList.contains('actions')) old[k].replaceChild(c.cloneNode(true), old[k].cells[at]); }));
  } else {
    const d = (document.activeElement || {}).dataset || {}, focused = $('rows').contains(document.activeElement) ? [d.verb, d.stage] : null;
    rows.forEach((r, k) => { if (flat[k] !== null) buttons(flat[k], why).forEach(b => r.lastChild.append(b, ' ')); });
    $('rows').replaceChildren(...rows);
    refocus(focused, why);
  }
  rowsShown = key;
  if (performance.now() > refusalUntil) $('may-act').textContent = s.read_only ? readOnly : s.may_act ? '' : 'buttons are disabled: open the address with ?token=… that was printed when the web UI was started';
}

/// "6 slots: 4 free, 2 ready"
function slotsText(slots) {
  const counts = slotStates.map(([state, text]) => [slots.filter(x => x.state === state).length, text]).filter(([n]) => n > 0);
  return `${slots.length} slots: ${counts.map(([n, text]) => `${n} ${text}`).join(', ')}`;
}
function rings(s) {
  const colors = palette();
  $('ring-list').replaceChildren(...s.rings.map(r => {
    const k = s.stages.findIndex(x => x.name === r.stage.split('.')[0]);
    const readers = r.readers.map(g => `${g.stage} (${g.kind})${g.kind === 'blocking' ? ', lag ' + g.lag : ''}${g.skipped ? ', ' + g.skipped.toLocaleString('en-US') + ' skipped' : ''}`);
    const name = el('b', {style: `color:${colors[Math.max(0, k) % colors.length]}`}, `output ring of ${r.stage}`);
    return el('div', {class: 'ring'}, el('p', {}, name, ` · ${r.slots.length} slots of ${bytes(r.slot_bytes)} (${r.memory}) · ${number(r.sent_per_second)} frames/s in, `
      + `${number(r.received_per_second)} out · ${bytes(r.bytes_per_second)}/s`),
      el('div', {class: 'slots', role: 'img', 'aria-label': slotsText(r.slots)}, ...r.slots.map((x, i) => el('div', {class: 'slot ' + x.state, title: `slot ${i}: ${x.state}${x.frame === null ? '' : ', frame ' + x.frame}`},
        x.frame === null ? '' : String(x.frame % 100000)))),
      el('p', {}, readers.length ? 'read by ' + readers.join(' · ') : 'no readers'));
  }));
}
$('legend').append(...slotStates.map(([state, text]) => el('span', {}, el('span', {class: 'slot ' + state}), text)));

function events(list) {
  $('event-list').replaceChildren(...list.slice().reverse().map(e => el('li', {}, el('time', {}, span(e.age_s)), el('span', {class: 'k-' + e.kind}, e.text))));
}

/// Disables all controls until the server answers again; the next answer rebuilds them.
function lost() {
  $('phase').className = 'pill lost';
  $('phase').textContent = 'no answer';
  noticeShown = rowsShown = requestShown = '';
  $('notice').hidden = false;
  $('notice').textContent = 'The server of this web UI does not answer: it has ended with its pipeline, or was stopped. Retrying.';
  $('confirm').close();
  for (const control of document.querySelectorAll('button, fieldset')) control.disabled = true;
}

async function poll() {
  try {
    const s = await (await fetch('/status.json?viewer=' + viewer, {headers: {'X-Carousel-Token': token}, signal: AbortSignal.timeout(pollTimeoutMs)})).json();
    $('parameters-reset').disabled = false;   // its fieldset disables it if necessary
    pill(s);
    notice(s);
    problems(s.problems);
    runShown = s.pipeline ? s.pipeline.run_id : '';
    if (s.pipeline) {
      $('name').textContent = s.pipeline.name;
      document.title = `${s.pipeline.name} – Carousel`;
      figures(s.pipeline);
      $('limit').textContent = s.pipeline.bottleneck.text;
    }
    banner(s.crash);
    checkStream(s.picture);
    picture(s);
    parameters(s);
    stages(s);
    rings(s);
    events(s.events);
  } catch (e) { lost(); }
  setTimeout(poll, 500);
}

/// The colour of a ring's line: its stage's colour, paler for each further output, so that the rings of one stage differ.
function ringColor(h, k) {
  const stageOf = r => r.stage.split('.')[0], own = stageOf(h.rings[k]), colors = palette();
  const at = Math.max(0, h.stages.findIndex(s => s.name === own)), before = h.rings.slice(0, k).filter(r => stageOf(r) === own).length;
  return colors[at % colors.length] + ['', '80', '55', '40'][Math.min(before, 3)];
}

async function plots() {
  try {
    const h = await (await fetch('/history.json', {signal: AbortSignal.timeout(pollTimeoutMs)})).json();
    const c = palette(), line = (name, k, values) => ({name, color: c[k % c.length], values});
    plot('fps', h, h.stages.map((s, k) => line(s.name, k, s.frames_per_second)));
    plot('latency', h, [...h.stages.map((s, k) => line(s.name, k, s.latency_p99_ms)), {name: 'end to end', color: css('--text'), values: h.end_to_end_p99_ms}]);
    plot('bytes', h, h.rings.map((r, k) => ({name: r.stage, color: ringColor(h, k), values: r.bytes_per_second.map(v => v / 1e9), format: v => bytes(v * 1e9) + '/s'})));
  } catch (e) { /* poll() reports it */ }
  setTimeout(plots, 1000);
}

/// Dashes of the lines of a plot, so that they differ not only in colour; the first line has none.
const dashes = [[], [7, 3], [2, 2], [9, 3, 2, 3], [12, 4], [4, 6], [1, 4], [9, 3, 2, 3, 2, 3]];
const dashOf = k => dashes[(k + Math.floor(k / dashes.length)) % dashes.length];   // the colours repeat after the same number of lines
function sample(color, dash) {
  const ns = 'http://www.w3.org/2000/svg', svg = document.createElementNS(ns, 'svg'), line = document.createElementNS(ns, 'line');
  for (const [k, v] of Object.entries({width: 26, height: 8, 'aria-hidden': 'true', class: 'sample'})) svg.setAttribute(k, v);
  for (const [k, v] of Object.entries({x1: 0, x2: 26, y1: 4, y2: 4, stroke: color, 'stroke-width': 2, 'stroke-dasharray': dash.join(' ')})) line.setAttribute(k, v);
  svg.append(line);
  return svg;
}

/// 1, 2 or 5 times a power of ten: about n steps up to `top`.
function step(top, n) {
  const raw = top / n, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map(m => m * power).find(v => v >= raw);
}

function plot(id, h, lines) {
  const canvas = $(id), ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const g = canvas.getContext('2d'), left = 46, right = 8, top = 6, bottom = 17;
  g.scale(ratio, ratio);
  g.font = '11px system-ui, "DejaVu Sans", sans-serif';
  const most = Math.max(1e-6, ...lines.flatMap(l => l.values)), each = step(most * 1.05, 4), high = Math.ceil(most * 1.05 / each) * each;
  const oldest = h.age_s.length ? h.age_s[0] : 0, reach = [30, 60].find(s => oldest <= s) || 120;
  const x = age => width - right - age / reach * (width - left - right), y = v => top + (1 - v / high) * (height - top - bottom);
  g.textBaseline = 'middle';
  g.textAlign = 'right';
  g.lineWidth = 1;
  const digits = Math.max(0, -Math.floor(Math.log10(each) + 1e-9));
  for (let v = 0; v <= high + each / 2; v += each) {
    g.strokeStyle = css('--grid');
    g.beginPath(); g.moveTo(left, y(v)); g.lineTo(width - right, y(v)); g.stroke();
    g.fillStyle = css('--muted');
    g.fillText(v >= 1000 ? Math.round(v).toLocaleString('en-US') : v.toFixed(digits), left - 5, y(v));
  }
  g.textBaseline = 'bottom';
  for (let age = reach; age >= 0; age -= reach / 3) {
    g.textAlign = age === reach ? 'left' : age === 0 ? 'right' : 'center';
    g.fillText(age === 0 ? "now" : `−${age} s`, x(age), height);
  }
  g.save();
  g.beginPath(); g.rect(left, 0, width - left - right, height - bottom + 1); g.clip();
  g.setLineDash([3, 3]);
  g.strokeStyle = css('--bad');
  for (const d of h.deaths) { g.beginPath(); g.moveTo(x(d.age_s), 0); g.lineTo(x(d.age_s), height - bottom); g.stroke(); }
  g.setLineDash([]);
  g.lineWidth = 1.5;
  for (const [k, l] of lines.entries()) {
    g.strokeStyle = l.color;
    g.setLineDash(dashOf(k));
    g.beginPath();
    l.values.forEach((v, i) => i === 0 ? g.moveTo(x(h.age_s[i]), y(v)) : g.lineTo(x(h.age_s[i]), y(v)));
    g.stroke();
  }
  g.restore();
  $(id + '-key').replaceChildren(...lines.map((l, k) => el('span', {}, sample(l.color, dashOf(k)),
    `${l.name} ${l.values.length ? (l.format || number)(l.values[l.values.length - 1]) : '–'}`)));
}

addEventListener('load', stream);   // not earlier: an endless picture would delay the load event forever
poll();
plots();
