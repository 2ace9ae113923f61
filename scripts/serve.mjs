// Runs the worker on Miniflare without wrangler's proxy: for tests, benchmarks and crash tests. The configuration
// is wrangler.toml's; the state in --state has the layout that `wrangler dev` uses, and either can open it.
// `scripts/local.py` starts it with its options, one JSON text.
import { existsSync, readFileSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { parseEnv } from "node:util";

import { lineOf } from "./log.mjs";

const projectRoot = path.dirname(import.meta.dirname);
// For local runs only: lets workerd take the Pyodide bundle from disk. Never part of the configuration.
const developmentFlag = "python_workers_development";

/** Every file below a folder, as paths relative to it, without what the tools leave behind. */
function listFiles(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes("__pycache__"))
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .sort();
}

/** The worker's modules, by the names that they have in a deployment: the main module is the first. */
function readModules(config, root) {
  const modules = [];
  const attach = (name, file, type) =>
    modules.push({ type, path: path.join(projectRoot, name), contents: readFileSync(file, type === "Data" ? null : "utf8") });

  const main = path.basename(config.main);
  attach(main, path.join(root, main), "PythonModule");
  const sources = [root, path.dirname(path.resolve(projectRoot, config.main))];
  for (const folder of new Set(sources)) {
    for (const name of listFiles(folder)) {
      const ownModule = folder === root ? name !== main : name.startsWith("dcb_runtime/");
      if (ownModule && name.endsWith(".py")) {
        attach(name, path.join(folder, name), "PythonModule");
      }
    }
  }
  const vendored = path.join(projectRoot, "python_modules");
  const excluded = config.python_modules?.exclude ?? [];
  for (const name of listFiles(vendored)) {
    if (!excluded.some((glob) => path.matchesGlob(name, glob))) {
      const isSdkScript = name.startsWith("workers/") && name.endsWith(".js");
      attach(`python_modules/${name}`, path.join(vendored, name), isSdkScript ? "ESModule" : "Data");
    }
  }
  return modules;
}

/** Variables and secrets: the configuration's, then .dev.vars, then the environment, then --var. */
function readBindings(config, vars) {
  const secrets = config.secrets?.required ?? [];
  const file = path.join(projectRoot, ".dev.vars");
  const fromFile = existsSync(file) ? parseEnv(readFileSync(file, "utf8")) : {};
  const fromEnvironment = secrets.filter((name) => process.env[name] !== undefined).map((name) => [name, process.env[name]]);
  return { ...config.vars, ...fromFile, ...Object.fromEntries(fromEnvironment), ...vars };
}

function miniflareOptions(options) {
  const { config } = options;
  const sqliteClasses = (config.migrations ?? []).flatMap((migration) => migration.new_sqlite_classes ?? []);
  const objects = config.durable_objects.bindings.map(({ name, class_name: className }) => [
    name,
    { className, useSQLite: sqliteClasses.includes(className) },
  ]);
  const databases = (config.d1_databases ?? []).map((entry) => [
    entry.binding,
    entry.preview_database_id ?? entry.database_id ?? entry.binding,
  ]);
  return {
    name: config.name,
    // The worker has a socket of its own; Miniflare's entry in front of it stays unused, on a port that it picks.
    unsafeDirectSockets: [{ host: "127.0.0.1", port: options.port }],
    host: "127.0.0.1",
    port: 0,
    cf: false,
    logRequests: false,
    unsafeHandleRuntimeRestart: () => fail(new Error("workerd ended unexpectedly")),
    handleStructuredLogs: (entry) => process.stderr.write(lineOf(entry) ?? ""),
    modulesRoot: projectRoot,
    modules: readModules(config, options.root),
    compatibilityDate: config.compatibility_date,
    compatibilityFlags: [...config.compatibility_flags, developmentFlag],
    durableObjects: Object.fromEntries(objects),
    d1Databases: Object.fromEntries(databases),
    bindings: readBindings(config, options.vars),
    resourcePersistencePath: path.join(options.state, "v3"),
  };
}

const options = JSON.parse(process.argv[2]);
let miniflare;
let ending = false;

async function end(code) {
  if (ending) {
    return;
  }
  ending = true;
  // Disposing of an instance that never started raises what `ready` raised.
  await miniflare?.dispose().catch(() => undefined);
  rmSync(options.deleteAtEnd, { recursive: true, force: true });
  process.exit(code);
}

async function fail(error) {
  // A signal to the whole group (Ctrl-C) ends workerd as well: then it did not fail.
  if (!ending) {
    process.stderr.write(`serve: ${error.stack}\n`);
    await end(1);
  }
}

function endOnSignals() {
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
    // Miniflare's own listeners exit at once, with an error code.
    process.removeAllListeners(signal);
    process.on(signal, () => end(0));
  }
}

endOnSignals();
try {
  const { Miniflare, convertV4MiniflareOptions } = await import("miniflare");
  miniflare = new Miniflare(convertV4MiniflareOptions(miniflareOptions(options)));
  endOnSignals();
  const url = (await miniflare.unsafeGetDirectURL()).origin;
  const answer = await fetch(`${url}/health`);
  if (!answer.ok) {
    process.stderr.write(`serve: GET /health answered ${answer.status}: ${await answer.text()}\n`);
  }
  process.stdout.write(`ready ${url}\n`);
} catch (error) {
  await fail(error);
}
