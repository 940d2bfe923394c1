/** What the scripted policy answers. Rules go by what the whole prompt holds, so that they fit every harness's own wrapping. */

/** How arguments are spelled: as the chat template spells them, or oddly but legally, so that every echo in another spelling shows. */
export type Spelling = "template" | "odd";

/** Name and command argument of each harness's shell tool. */
const SHELLS: ReadonlyMap<string, { tool: string; argument: string; description?: true }> = new Map([
  ["pi", { tool: "bash", argument: "command" }],
  ["pi-new", { tool: "bash", argument: "command" }],
  ["opencode", { tool: "bash", argument: "command", description: true }],
  ["mini-swe-agent", { tool: "bash", argument: "command" }],
  ["codex", { tool: "exec_command", argument: "cmd" }],
  ["claude-code", { tool: "Bash", argument: "command", description: true }],
]);

export const TASK = "TITO-TASK: create a.txt and read it";
export const DONE = "TITO-DONE, all is well.";

/** A flat object as the chat template spells it. */
export function spell(value: Record<string, string | boolean>): string {
  return `{${Object.entries(value)
    .map(([key, field]) => `${JSON.stringify(key)}: ${JSON.stringify(field)}`)
    .join(", ")}}`;
}

export function shellCall(
  harness: string,
  command: string,
  spelling: Spelling = "template",
): { name: string; arguments: string } {
  const shell = SHELLS.get(harness);
  if (shell === undefined) throw new Error(`no shell tool known for ${harness}`);
  const space = spelling === "odd" ? "  " : " ";
  const description = shell.description === true ? `,${space}"description": "runs"` : "";
  return { name: shell.tool, arguments: `{"${shell.argument}":${space}${JSON.stringify(command)}${description}}` };
}

/** How a harness is told that the work is done: words, or, for Mini-SWE-Agent, a command. */
export function finalReply(harness: string): object {
  if (harness !== "mini-swe-agent") return { reasoning: "Finished. ", content: DONE };
  return { content: DONE, tool_calls: [shellCall(harness, "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")] };
}

/** Calls without tools are side calls: titles and summaries. */
export const SIDE_CALLS = { name: "side", match: { hasTools: false }, reply: { content: "A short title" } };

/** One call, then two at once, then the end. */
export function toolLoop(harness: string, spelling: Spelling = "template"): object[] {
  const call = (command: string) => shellCall(harness, command, spelling);
  return [
    SIDE_CALLS,
    {
      name: "first",
      match: { contains: "TITO-TASK", excludes: "step-one" },
      reply: {
        reasoning: "I should create the file. ",
        content: "\n\nI'll create café.  \n",
        tool_calls: [call("echo step-one > a.txt")],
      },
    },
    {
      name: "parallel",
      match: { contains: "step-one", excludes: "step-two" },
      reply: {
        reasoning: "Two at once. ",
        tool_calls: [call("cat a.txt; echo step-two-a"), call("echo step-two-b")],
      },
    },
    { name: "end", match: { contains: ["step-two-a", "step-two-b"] }, reply: finalReply(harness) },
  ];
}
