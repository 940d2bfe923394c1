/**
 * The renderer's thread, started again when it ends by itself (out of memory, a bug). Requests are pure: one that was under way is asked once more.
 * A thread that ends again and again without an answer is lost, and whoever started the renderer is told.
 */
import { TitoError } from "@tito/format";
import type { Connection } from "./connection.js";
import type { OperationName, Operations } from "./protocol.js";
import type { StartOptions } from "./start-options.js";

/** Starts in a row without an answer between them. */
const RESTARTS_MAX = 3;
/** A request that ends the thread is not asked a third time. */
const ATTEMPTS_MAX = 2;

type Opened = Operations["open"]["result"];

export class SupervisedThread {
  #connection: Connection;
  #restarts = 0;
  #restarting: Promise<void> | null = null;
  #closed = false;

  private constructor(
    connection: Connection,
    /** What the bundle said at the first start. */
    readonly opened: Opened,
    private readonly connect: () => Connection,
    private readonly options: Pick<StartOptions, "onRestart" | "onLost">,
  ) {
    this.#connection = connection;
  }

  /** @throws TitoError `bundle_invalid`. */
  static async start(connect: () => Connection, options: Pick<StartOptions, "onRestart" | "onLost">) {
    const connection = connect();
    const opened = await connection.ask("open").catch(async (error) => {
      await connection.close();
      throw error;
    });
    return new SupervisedThread(connection, opened, connect, options);
  }

  ask<Name extends OperationName>(name: Name, ...args: Operations[Name]["args"]): Promise<Operations[Name]["result"]> {
    return this.run((connection) => connection.ask(name, ...args));
  }

  /** Does `work` with the living thread; once more, with the next one, when that thread ends meanwhile. */
  async run<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const connection = await this.#living();
      try {
        const result = await work(connection);
        this.#restarts = 0;
        return result;
      } catch (error) {
        if (connection.alive || this.#closed || attempt === ATTEMPTS_MAX) throw error;
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#connection.close();
  }

  async #living(): Promise<Connection> {
    if (!this.#connection.alive && !this.#closed) {
      this.#restarting ??= this.#restart().finally(() => {
        this.#restarting = null;
      });
      await this.#restarting;
    }
    return this.#connection;
  }

  async #restart(): Promise<void> {
    if (this.#restarts >= RESTARTS_MAX) {
      const error = new TitoError("internal", `the renderer's thread ended ${RESTARTS_MAX + 1} times and is given up`);
      this.options.onLost?.(error);
      throw error;
    }
    this.#restarts += 1;
    this.options.onRestart?.(this.#restarts);
    const connection = this.connect();
    this.#connection = connection;
    const { contract_id } = await connection.ask("open");
    if (contract_id === this.opened.contract_id) return;
    await connection.close();
    throw new TitoError("bundle_invalid", "the renderer bundle is not the one that this process started with");
  }
}
