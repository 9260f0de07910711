"""The protocol's own server, by the package `mcp`: the only file here that imports it, for it loads slowly.

What is listed, called, read and prompted is handed on to `tools` and `guide`. A refusal of a tool is a result
with `isError`, so that a model reads it and mends its question; a refusal of anything else, and the name of a
tool that there is not, is an error of the protocol. Both say what is wrong and what to do instead.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

from mcp import types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError

import understudy
from understudy.server.gate import Gate
from understudy.server.http.security import MOST_BODY, RoutePath
from understudy.server.logs import log_failure
from understudy.server.mcp import guide
from understudy.server.mcp.tools import AgentTool, Toolbox
from understudy.server.problems import Problem, problem_of
from understudy.server.replies import encoded
from understudy.server.tokens import Caller

SCHEME, RESOURCE = "understudy://", "/declaration"
TEMPLATE = f"{SCHEME}{{table}}{RESOURCE}"

PROBLEM = "understudy/problem"
"""Under which the `_meta` of a tool's refusal has the problem document."""

REFUSED = -32000
"""The code of a refusal in JSON-RPC; its `data` is the problem, whose own code says more."""

MOST_COMPLETIONS = 100

logging.getLogger("mcp").setLevel(
    logging.CRITICAL
)  # its words may hold what was asked; failures are logged here

Context = ServerRequestContext[Any, Any]


def http_manager(server: Server[Any], hosts: frozenset[str]) -> StreamableHTTPSessionManager:
    """The protocol over HTTP, without sessions: each request is answered by one JSON document.

    `hosts` are the names under which the server may be called; where there are none the names were left to a
    proxy, and the door has compared the origin of the request with the host that it was sent to.
    """
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in sorted(hosts)]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=bool(hosts),
        allowed_hosts=[*sorted(hosts), *(f"{host}:*" for host in sorted(hosts))],
        allowed_origins=[*origins, *(f"{origin}:*" for origin in origins)],
    )
    return StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        security_settings=security,
        max_request_body_size=MOST_BODY,
    )


def protocol_server(gate: Gate, toolbox: Toolbox, caller_of: Callable[[Context], Caller]) -> Server[Any]:
    """The protocol's server before a gate; `caller_of` tells who sent a request."""
    handlers = _Handlers(gate, toolbox, caller_of)
    server: Server[Any] = Server(
        "understudy",
        version=understudy.__version__,
        title="Understudy",
        instructions=guide.instructions(own=gate.served.terms.own),
        get_tool_input_schema=lambda name: toolbox.tools[name].takes if name in toolbox.tools else None,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_completion=handlers.complete,
    )
    server.middleware[:] = [handlers.counted]
    return server


async def on_standard_streams(server: Server[Any]) -> None:
    """Serve whoever started this process over its standard input and output, until the input ends."""
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class _Handlers:
    """What the protocol's methods do."""

    def __init__(self, gate: Gate, toolbox: Toolbox, caller_of: Callable[[Context], Caller]) -> None:
        self._gate = gate
        self._toolbox = toolbox
        self._caller_of = caller_of

    async def counted(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Count every request against its caller's rate, once, and tell refusals in the protocol's way.

        A tool is counted by `call_tool`, whose refusals a model reads.
        """
        if ctx.method == "tools/call":
            return await call_next(ctx)
        try:
            with self._gate.one_request(self._caller_of(ctx)):
                return await call_next(ctx)
        except Problem as problem:
            raise MCPError(REFUSED, _sentence(problem), problem.as_plain()) from None

    # ---- tools

    async def list_tools(self, _: Context, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed(tool) for tool in self._toolbox.tools.values()])

    async def call_tool(self, context: Context, called: types.CallToolRequestParams) -> types.CallToolResult:
        name = called.name
        if name not in self._toolbox.tools:
            names = ", ".join(self._toolbox.tools)
            raise MCPError(types.INVALID_PARAMS, f"There is no such tool. Tools are: {names}.")
        if context.request is not None:
            context.request.scope["route"] = RoutePath(f"/mcp {name}")
        caller = self._caller_of(context)
        try:
            with self._gate.one_request(caller):
                told = await self._toolbox.call(caller, name, called.arguments or {})
        except Problem as problem:
            if problem.status >= 500 and problem.__cause__ is not None:
                log_failure(problem, "mcp")
            return _refused(problem)
        except Exception as error:
            failed = problem_of(error)
            failed.more["reference"] = log_failure(error, "mcp")
            return _refused(failed)
        text = types.TextContent(type="text", text=encoded(told).decode())
        return types.CallToolResult(content=[text], structured_content=told)

    # ---- what is declared

    async def list_resources(self, _: Context, __: Any) -> types.ListResourcesResult:
        found = [
            types.Resource(
                name=f"{name} declaration",
                title=f"What is declared about {name}",
                uri=f"{SCHEME}{quote(name, safe='')}{RESOURCE}",
                mime_type="application/json",
            )
            for name in self._gate.served.tables
        ]
        return types.ListResourcesResult(resources=found)

    async def list_templates(self, _: Context, __: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="declaration",
            title="What is declared about a table",
            uri_template=TEMPLATE,
            description="Attributes, their values and edges, the budget, and what is public about the rows.",
            mime_type="application/json",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, context: Context, wanted: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(wanted.uri)
        if not (uri.startswith(SCHEME) and uri.endswith(RESOURCE) and len(uri) <= 1000):
            raise MCPError(types.INVALID_PARAMS, f"There is no such resource. Resources are: {TEMPLATE}.")
        table = unquote(uri[len(SCHEME) : -len(RESOURCE)])
        told = await self._gate.describe(self._caller_of(context), table)
        content = types.TextResourceContents(
            uri=uri, mime_type="application/json", text=json.dumps(told, ensure_ascii=False, indent=1)
        )
        return types.ReadResourceResult(contents=[content])

    # ---- how to ask

    async def list_prompts(self, _: Context, __: Any) -> types.ListPromptsResult:
        table = types.PromptArgument(
            name="table", description="A table, whose attributes are listed as well.", required=False
        )
        prompt = types.Prompt(
            name=guide.PROMPT,
            title=guide.PROMPT_TITLE,
            description=guide.PROMPT_DESCRIPTION,
            arguments=[table],
        )
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(
        self, context: Context, wanted: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        if wanted.name != guide.PROMPT:
            raise MCPError(types.INVALID_PARAMS, f"There is no such prompt. There is: {guide.PROMPT}.")
        table = (wanted.arguments or {}).get("table", "")
        described = await self._gate.describe(self._caller_of(context), table) if table else None
        text = types.TextContent(type="text", text=guide.page(described))
        return types.GetPromptResult(
            description=guide.PROMPT_DESCRIPTION, messages=[types.PromptMessage(role="user", content=text)]
        )

    async def complete(self, _: Context, wanted: types.CompleteRequestParams) -> types.CompleteResult:
        """The names of tables that begin as what was typed: both the resource and the prompt take one."""
        typed = wanted.argument.value if wanted.argument.name == "table" else "\0"
        found = sorted(name for name in self._gate.served.tables if name.startswith(typed))
        return types.CompleteResult(
            completion=types.Completion(values=found[:MOST_COMPLETIONS], total=len(found))
        )


def _listed(tool: AgentTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.takes,
        output_schema=tool.gives,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.spends,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )


def _refused(problem: Problem) -> types.CallToolResult:
    """A refusal as a model reads it: one paragraph, and the problem document beside it for programs.

    The document is no structured content: many clients compare that with the schema of what the tool gives, also
    where it gives nothing.
    """
    text = types.TextContent(type="text", text=_sentence(problem))
    return types.CallToolResult(content=[text], is_error=True, _meta={PROBLEM: problem.as_plain()})


def _sentence(problem: Problem) -> str:
    """What is wrong, what to do instead, and what would have worked."""
    parts = [_ended(problem.detail), _ended(problem.hint)]
    if problem.suggestions:
        parts.append(f"Suggestions: {'; '.join(problem.suggestions[:10])}.")
    if problem.retry_after is not None:
        parts.append(f"Try again after {max(1, round(problem.retry_after + 0.499))} s.")
    return " ".join(part for part in parts if part)


def _ended(text: str) -> str:
    text = text.strip()
    return text if not text or text[-1] in ".!?:" else f"{text}."
