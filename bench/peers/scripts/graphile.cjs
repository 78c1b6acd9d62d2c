// graphile-worker in the bench: `load URL JOBS`, `work URL`, or `latency URL SAMPLES`.
"use strict";

const { setTimeout: pause } = require("node:timers/promises");
const { Logger, makeWorkerUtils, run } = require("graphile-worker");

// As on its performance page: jobs are claimed and completed in batches.
const worker = {
  concurrentJobs: 24,
  maxPoolSize: 25,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};
const BATCH = 5_000;
const WARM_UP = 100;

const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") console.error(message);
});

function start(connectionString, taskList) {
  const preset = { worker: { ...worker, connectionString } };
  return run({ preset, taskList, logger, parsedCronItems: [] });
}

async function load(connectionString, jobs) {
  const utils = await makeWorkerUtils({ connectionString, logger });
  await utils.migrate();
  for (let left = jobs; left > 0; left -= BATCH) {
    const some = { length: Math.min(left, BATCH) };
    await utils.addJobs(Array.from(some, () => ({ identifier: "noop" })));
  }
  // It keeps no ended job, so the number at the start is remembered.
  await utils.withPgClient(async (client) => {
    await client.query("CREATE SCHEMA bench");
    await client.query(`CREATE TABLE bench.loaded AS SELECT ${jobs} AS jobs`);
  });
  await utils.release();
}

function work(connectionString) {
  return start(connectionString, { noop: async () => {} });
}

async function latency(connectionString, samples) {
  let begun = () => {};
  const runner = await start(connectionString, { noop: async () => begun(performance.now()) });
  const utils = await makeWorkerUtils({ connectionString, logger });
  const seen = [];
  for (let sample = -WARM_UP; sample < samples; sample++) {
    // The pause between the samples of Workron; the first samples are not counted.
    await pause(sample < 0 ? 0 : 50 + Math.random() * 50);
    const begunAt = new Promise((resolve) => (begun = resolve));
    const added = performance.now();
    await utils.addJob("noop", {});
    const took = (await begunAt) - added;
    if (sample >= 0) seen.push(took);
  }
  await utils.release();
  await runner.stop();
  console.log(JSON.stringify(seen));
}

const [command, url, count] = process.argv.slice(2);
({ load, work, latency })[command](url, Number(count));
