// SPDX-License-Identifier: MIT
// TAP for these tests: test() in order, then finish().
let n = 0;
let failed = 0;

export async function test(name, fn) {
  n++;
  try {
    await fn();
    console.log(`ok ${n} - ${name}`);
  } catch (e) {
    failed++;
    console.log(`not ok ${n} - ${name}`);
    for (const line of String(e?.stack ?? e).split("\n")) console.log(`# ${line}`);
  }
}

export function skip(name, why) {
  n++;
  console.log(`ok ${n} - ${name} # SKIP ${why}`);
}

export function finish() {
  console.log(`1..${n}`);
  process.exit(failed > 0 ? 1 : 0);
}

// Waits until fn gives something true, at most 20 s.
export async function until(what, fn) {
  const end = Date.now() + 20000;
  for (;;) {
    const v = await fn();
    if (v) return v;
    if (Date.now() > end) throw new Error(`${what}: did not happen in 20 s`);
    await new Promise((r) => setTimeout(r, 10));
  }
}
