// Makes data/*.json and testdata/crosscheck.json from the npm package @pydantic/genai-prices, MIT licence,
// (c) Pydantic Services Inc. 2025 to present. Run by hand: node generate.cjs. Needs npm and the network; tests and
// builds need neither. To take newer prices, raise version and released together.
const version = '0.1.8';
const released = '2026-09-23'; // npm view @pydantic/genai-prices@0.1.8 time
const providers = ['openai', 'anthropic', 'google', 'mistral', 'deepseek', 'groq', 'x-ai', 'cerebras', 'together',
  'fireworks', 'moonshotai', 'perplexity', 'cohere', 'azure', 'openrouter'];

const { execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const tmp = fs.mkdtempSync(path.join(os.tmpdir(), 'prices-'));
execFileSync('npm', ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', tmp,
  '@pydantic/genai-prices@' + version], { stdio: 'inherit' });
const lib = require(path.join(tmp, 'node_modules', '@pydantic', 'genai-prices'));

// What we count, under our names; dollars per million tokens, and per thousand requests.
const keys = { input_mtok: 'input', output_mtok: 'output', cache_read_mtok: 'cache_read', cache_write_mtok: 'cache_write',
  requests_kcount: 'requests' };

function rates(prices) {
  const out = {};
  for (const [from, to] of Object.entries(keys)) {
    const p = prices[from];
    if (p === undefined) continue;
    out[to] = typeof p === 'number' ? p : { base: p.base, tiers: p.tiers.map((t) => ({ start: t.start, price: t.price })) };
  }
  return out;
}

function conditional(m) {
  const list = Array.isArray(m.prices) ? m.prices : [{ prices: m.prices }];
  return list.map(({ constraint: c, prices }) => {
    const out = { rates: rates(prices) };
    if (c && c.type === 'start_date') out.from = c.start_date;
    if (c && c.type === 'time_of_date') out.daily = [c.start_time, c.end_time];
    return out;
  });
}

// Go's regexps know no lookahead; the one form in use becomes no_regex.
function plain(match) {
  if (match.or) return { or: match.or.map(plain) };
  if (match.and) return { and: match.and.map(plain) };
  const not = match.regex && /^\^\(\?!\.\*(.*)\)$/.exec(match.regex);
  if (not) return { no_regex: not[1] };
  if (match.regex && match.regex.includes('(?')) throw new Error('unknown form: ' + match.regex);
  return match;
}

const data = path.join(__dirname, '..', 'data');
const index = { source: '@pydantic/genai-prices ' + version + ' (MIT)', date: released, providers: [] };
const check = [];
const usages = [
  { input_tokens: 24240, cache_write_tokens: 6000, cache_read_tokens: 18000, output_tokens: 50 },
  { input_tokens: 1000, output_tokens: 1000 },
  { input_tokens: 500000, cache_read_tokens: 100000, output_tokens: 3000 },
];
const times = ['2026-11-21T12:00:00Z', '2026-11-21T02:00:00Z', '2027-02-01T07:00:00Z', '2025-06-01T20:00:00Z'];
for (const id of providers) {
  const p = lib.findProvider({ providerId: id });
  const chats = (c) => c.rates.input !== undefined && c.rates.output !== undefined;
  // Speech, images and embeddings keep their place without a price: the first match counts, and a later entry
  // must not catch their names.
  const models = p.models.map((m) => ({ id: m.id, match: plain(m.match), window: m.context_window, prices: conditional(m) }))
    .map((m) => (m.prices.every(chats) ? m : { id: m.id, match: m.match }));
  index.providers.push({ id, api: p.api_pattern });
  fs.writeFileSync(path.join(data, id + '.json'), '[\n' + models.map((m) => JSON.stringify(m)).join(',\n') + '\n]\n');
  models.forEach((m, i) => {
    if (!m.prices) return;
    const tiered = JSON.stringify(m.prices).includes('tiers') || m.prices.length > 1;
    if (i % (tiered ? 1 : 5) !== 0 || (id === 'openrouter' && i % 25 !== 0)) return;
    for (const u of usages) {
      for (const t of tiered ? times : times.slice(0, 1)) {
        const r = lib.calcPrice(u, m.id, { providerId: id, timestamp: new Date(t) });
        check.push({ model: id + '/' + m.id, at: t, usage: u, usd: r && r.model.id === m.id ? r.total_price : null });
      }
    }
  });
}
fs.writeFileSync(path.join(data, 'index.json'), JSON.stringify(index, null, 1) + '\n');
fs.writeFileSync(path.join(__dirname, '..', 'testdata', 'crosscheck.json'),
  '[\n' + check.filter((c) => c.usd !== null).map((c) => JSON.stringify(c)).join(',\n') + '\n]\n');
fs.rmSync(tmp, { recursive: true });
