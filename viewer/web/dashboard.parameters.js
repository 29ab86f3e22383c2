'use strict';
// The panel "Parameters": its controls are built from the fields that the supervisor publishes; no field is known in advance. This file
// precedes dashboard.js in one script, and uses its el, $, post, step and runShown.
const changeEveryMs = 100, restMs = 700;   // between two changes; how long a released control keeps its value
let parameterControls = [], parametersShown = '';

/// The unsent changes: one request at a time, only the newest value per name. `null` is the name of a reset.
const changes = {
  waiting: new Map(), busy: false, last: -Infinity,
  put(name, value) {
    this.waiting.set(name, value);
    this.next();
  },
  async next() {
    if (this.busy || this.waiting.size === 0) return;
    this.busy = true;
    await new Promise(done => setTimeout(done, Math.max(0, this.last + changeEveryMs - performance.now())));
    const first = [...this.waiting][0];   // read after the wait: the newest value
    if (first) {
      const [name, value] = first;
      this.waiting.delete(name);
      this.last = performance.now();
      const why = name === null ? await post('/parameters/reset') : await post('/parameters', JSON.stringify({[name]: value}));
      $('parameters-note').textContent = why;
      if (!this.waiting.has(name)) parameterControls.filter(c => c.field.name === name).forEach(c => c.until = why ? 0 : performance.now() + restMs);
    }
    this.busy = false;
    this.next();
  },
};

const inDegrees = f => f.kind === 'number' && f.unit === 'rad';
const factorOf = f => inDegrees(f) ? 180 / Math.PI : 1;
const unitOf = f => inDegrees(f) ? '°' : f.unit || '';
const textOf = (f, v) => String(Number((v * factorOf(f)).toPrecision(inDegrees(f) ? 4 : 6)));   // a float has no more significant digits

/// Ends of a slider in the field's own unit; null if the field has no finite range.
function sliderRange(f) {
  const [low, high] = f.usual_low < f.usual_high ? [f.usual_low, f.usual_high] : [f.low, f.high];
  return Number.isFinite(low) && Number.isFinite(high) && low < high ? [low, high] : null;
}
function stepOf(f) {
  if (f.step > 0) return f.step * factorOf(f);
  const range = f.count > 1 ? null : sliderRange(f);   // a point may be anywhere: its range implies no step
  const each = range ? step((range[1] - range[0]) * factorOf(f), 200) : 0.1;
  return f.kind === 'integer' ? Math.max(1, Math.round(each)) : each;
}
/// 120 for 119.98, so that the steps from there are whole degrees, too.
const roundedEnd = degrees => Math.abs(Math.round(degrees) - degrees) < 0.1 ? Math.round(degrees) : degrees;
/// The entered number in the field's unit. An end of the range entered in degrees is exactly that end, not a rounding error beyond it.
function entered(f, text) {
  const v = Number(text) / factorOf(f), near = 1e-6 * (f.high - f.low);
  return inDegrees(f) ? [f.low, f.high].find(end => Math.abs(v - end) <= near) ?? v : v;
}

/// One field: its values per element, and the inputs that show them.
class Control {
  constructor(field) {
    this.field = field;
    this.list = [];
    this.inputs = [];    // [{element, input, show}]
    this.until = 0;      // until then the user is changing it
    this.pressed = false;
  }
  inHand() {
    return this.pressed || performance.now() < this.until
      || this.inputs.some(i => i.input === document.activeElement && i.input.type === 'number' && i.input.value !== i.shown);
  }
  /// Takes the run's value, which another program may have set.
  accept(value) {
    if (this.inHand()) return;
    this.list = Array.isArray(value) ? [...value] : [value];
    this.show();
  }
  /// `why`: the reason that the control is disabled; '': it is enabled.
  explain(why) {
    const f = this.field;
    for (const i of this.inputs) i.input.title = why || (i.input.type === 'number' ? `from ${textOf(f, f.low)} to ${textOf(f, f.high)}` : '');
  }
  show(except) {
    for (const i of this.inputs) if (i.input !== except) i.show(this.list[i.element]);
  }
  change(element, value, by) {
    this.list[element] = value;
    this.until = Infinity;   // until the server answers
    this.show(by);
    changes.put(this.field.name, this.list.length > 1 ? [...this.list] : value);
  }
  add(element, input, show) {
    const entry = {element, input, shown: '', show(v) {
      const text = show(v);
      if (input.value !== text) input.value = text;
      entry.shown = input.value;
    }};
    this.inputs.push(entry);
    return input;
  }

  number(element, label) {
    const f = this.field, input = el('input', {type: 'number', step: stepOf(f), 'aria-label': label});
    input.addEventListener('change', () => input.value.trim() === '' ? this.show() : this.change(element, entered(f, input.value)));
    input.addEventListener('blur', () => { if (!this.inHand()) this.show(); });   // the input was left with an incomplete number
    return this.add(element, input, v => textOf(f, v));
  }
  slider(range, id) {
    const f = this.field, [low, high] = range.map(v => inDegrees(f) ? roundedEnd(v * factorOf(f)) : v);
    const input = el('input', {type: 'range', id, min: low, max: high, step: stepOf(f)});
    input.addEventListener('input', () => this.change(0, Math.min(f.high, Math.max(f.low, entered(f, input.value))), input));
    input.addEventListener('pointerdown', () => this.pressed = true);
    for (const end of ['pointerup', 'pointercancel', 'blur']) input.addEventListener(end, () => this.pressed = false);
    // A slider rounds to its steps and clamps to its ends: the value read differs from the value set.
    return this.add(0, input, v => { input.value = v * factorOf(f); return input.value; });
  }
  checkbox(element, attributes) {
    const input = el('input', {type: 'checkbox', ...attributes});
    input.addEventListener('change', () => this.change(element, input.checked));
    return this.add(element, input, v => { input.checked = v; return input.value; });
  }
  select(element, attributes) {
    const input = el('select', attributes, ...this.field.choices.map(c => el('option', {value: c}, c)));
    input.addEventListener('change', () => this.change(element, input.value));
    return this.add(element, input, v => String(v));
  }
  plain(element, attributes) {
    return this.field.kind === 'flag' ? this.checkbox(element, attributes) : this.select(element, attributes);
  }

  row() {
    const f = this.field, id = 'parameter-' + f.name, count = f.count || 1, unit = unitOf(f), name = f.label || f.name;
    const words = name + (unit ? `, ${unit}` : ''), isNumber = f.kind === 'number' || f.kind === 'integer', range = sliderRange(f);
    if (count > 1) {
      const inputs = [...Array(count).keys()].map(k => {
        const label = `${words} ${'xyzw'[k] || k}`;
        return isNumber ? this.number(k, label) : this.plain(k, {'aria-label': label});
      });
      return [el('span', {id}, words), el('span', {class: 'boxes', role: 'group', 'aria-labelledby': id}, ...inputs)];
    }
    const label = el('label', {for: id}, words);
    if (!isNumber) return [label, this.plain(0, {id})];
    if (range) return [label, this.slider(range, id), this.number(0, words + ' as a number')];
    const box = this.number(0, words);
    box.id = id;
    return [label, box];
  }
}

function buildParameters(fields) {
  changes.waiting.clear();   // changes for another run
  $('parameters-note').textContent = '';
  parameterControls = fields.map(f => new Control(f));
  $('parameter-list').replaceChildren(...parameterControls.map(c => el('div', {class: 'parameter'}, ...c.row())));
}

/// The keys of the stages in the pipeline file, which can be read here only.
let settingsShown = '';
function settings(s) {
  const rows = s.stages.filter(x => x.settings.length > 0), key = JSON.stringify(rows.map(x => [x.name, x.settings]));
  if (key === settingsShown) return;
  settingsShown = key;
  $('settings').hidden = rows.length === 0;
  $('setting-list').replaceChildren(...rows.flatMap(x => [el('dt', {}, x.name), el('dd', {}, x.settings.map(p => `${p.name} ${p.value}`).join(' · '))]));
}

function parameters(s) {
  settings(s);
  const p = s.parameters, fields = p ? p.fields.filter(f => f.role !== 'hidden' && f.role !== 'camera.up') : [];
  $('parameters').hidden = fields.length === 0;
  if (fields.length === 0) return;
  const key = JSON.stringify([runShown, p.type, fields]);   // the control elements are kept, so that a drag is not interrupted
  if (key !== parametersShown) buildParameters(fields);
  parametersShown = key;
  const why = whyNoAction(s);
  $('parameter-set').disabled = why !== '';
  $('parameters-reset').title = why || 'reset all values to those at the start of the run';
  $('parameters-about').textContent = p.number === 0 ? 'initial values'
    : `${p.number.toLocaleString('en-US')} ${p.number === 1 ? 'change' : 'changes'}, the newest from frame ${p.from.toLocaleString('en-US')} on`;
  for (const c of parameterControls) {
    c.explain(why);
    c.accept(p.values[c.field.name]);
  }
}

function resetParameters() {
  changes.waiting.clear();
  for (const c of parameterControls) c.until = 0;
  changes.put(null, true);
}
