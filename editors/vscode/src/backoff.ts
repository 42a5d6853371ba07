// How long to wait before trying again.

/** Grows from half a second to half a minute; a connection that has lasted starts it anew. */
export class Backoff {
  private failures = 0;

  /** Milliseconds to wait after one more failure. */
  next(): number {
    this.failures += 1;
    return Math.min(30_000, 500 * 2 ** (this.failures - 1));
  }

  get count(): number {
    return this.failures;
  }

  reset(): void {
    this.failures = 0;
  }
}
