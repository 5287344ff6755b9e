"""Stages: the parts of a system. A stage is a frozen value, which does its work with what a runtime opens for it.

Its fields give its syntax, its canonical name, its values in keys and records, its help, and the error for a wrong
setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic.fields import FieldInfo

from r2med.foundation.core.errors import UserError, expected_type, nearest
from r2med.foundation.core.foreign_code import foreign_code
from r2med.foundation.core.keys import changed_values
from r2med.foundation.core.names import Kind, stage_class
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.core.spec import Call, parse_stage

if TYPE_CHECKING:  # a list of stages must not load the engine and the network
    from r2med.foundation.runtime.runtime import Runtime


class Stage(BaseModel):
    """A stage of a system with its settings. Subclasses declare the settings as fields. `name` is the typed name."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)

    kind: ClassVar[str]
    """One of `names.Kind`: expand, retrieve, rerank, or build for a step of a build."""
    takes: ClassVar[str] = ""
    """"llm" if the first argument is the name of an LLM."""
    prompt_fields: ClassVar[tuple[str, ...] | None] = None
    """The fields that the prompt template NAME.txt may contain. None without a template, or if a card lists them."""
    argument_name: ClassVar[str | None] = None
    """The setting that is typed first and without a key, such as the LLM of hyde(o3-mini)."""
    depth_name: ClassVar[str | None] = None
    """The setting that is typed as @DEPTH. Only rerankers have it."""
    typed_settings: ClassVar[tuple[str, ...]] = ()
    """The settings that are typed as KEY=VALUE."""

    name: str
    """The name of the stage, as typed."""

    def __init_subclass__(cls, kind: str | None = None, takes: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        if kind is not None:
            cls.kind, cls.takes = kind, takes

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        super().__pydantic_init_subclass__(**more)
        names = {place_of(field): name for name, field in cls.model_fields.items()}
        cls.argument_name, cls.depth_name = names.get("argument"), names.get("depth")
        cls.typed_settings = tuple(
            name for name, field in cls.model_fields.items() if name != "name" and not place_of(field)
        )

    def __init__(self, **values: Any) -> None:
        name = values.get("name") or type(self).model_fields["name"].default
        try:
            super().__init__(**{**self.defaults(str(name)), **values})
        except ValidationError as error:
            raise UserError(_explained(type(self), str(name), error)) from None
        method = METHODS.get(self.kind, "")
        if method and getattr(type(self), method.partition("(")[0]) is getattr(Stage, method.partition("(")[0]):
            raise self._lacks(method)  # now, before an LLM is paid whose answers it would read

    @classmethod
    def defaults(cls, name: str) -> Mapping[str, Any]:
        """Return the defaults of a name that differ from the declared ones. A card may set them."""
        return {}

    @classmethod
    def summary(cls, name: str) -> str:
        """Return one sentence that describes the stage of a name."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    @classmethod
    def notes(cls, name: str) -> tuple[str, ...]:
        """Return further facts about the stage of a name, a sentence each, as a card may have them."""
        return ()

    @classmethod
    def settings_of_card(cls, name: str) -> tuple[str, ...]:
        """Return the declared settings that the stage of a name does not have, because its card decides them."""
        return ()

    @classmethod
    def template_fields(cls, name: str) -> tuple[str, ...] | None:
        """Return the fields that the prompt template of a name may contain. A card may allow more."""
        return cls.prompt_fields

    @classmethod
    def parse(cls, call: Call) -> Stage:
        """Return the stage of a call. Raises UserError if a setting does not exist or has a wrong value."""
        values: dict[str, Any] = {"name": call.name}
        if len(call.arguments) > (cls.argument_name is not None):
            extra = call.arguments[-1]
            raise UserError(f"{call.name} does not know what {extra!r} is: settings are written KEY=VALUE")
        if cls.argument_name and call.arguments:
            values[cls.argument_name] = call.arguments[0]
        if call.depth is not None:
            if cls.depth_name is None:
                raise UserError(f"{call}: only rerankers have a depth, as in bm25 → bge-reranker@100")
            values[cls.depth_name] = call.depth
        for key, value in call.settings:
            if key not in cls.typed_settings:
                raise _no_setting(cls, key, call.name)
            if key in values:
                raise UserError(f"{call}: {key} is given twice")
            values[key] = value
        return cls(**values)

    def __str__(self) -> str:
        argument = getattr(self, self.argument_name) if self.argument_name else None
        depth = getattr(self, self.depth_name) if self.depth_name else None
        return str(Call(self.name, (printed(argument),) if argument else (), self.changed, depth))

    def __hash__(self) -> int:
        return hash((type(self), str(self)))  # settings of a user's stage may be lists

    @property
    def changed(self) -> tuple[tuple[str, str], ...]:
        """The typed form of all settings that differ from their defaults."""
        fields = type(self).model_fields
        plain = {key: fields[key].get_default(call_default_factory=True) for key in self.typed_settings}
        plain |= self.defaults(self.name)
        return tuple(
            (key, printed(getattr(self, key))) for key in self.typed_settings if getattr(self, key) != plain[key]
        )

    def settings(self) -> dict[str, Any]:
        """Return the name and the declared values for keys, ready for JSON, and a digest of code outside this package.

        Values equal to the declared default are left out.
        """
        return {"stage": self.name, **changed_values(self, but=("name",)), **foreign_code(type(self))}

    def feeding(self, retriever: Stage) -> Stage:
        """Return the expansion for a retriever. Feedback uses that retriever for its own searches."""
        return self

    def own_queries(self) -> Stage | None:
        """Return the part of a retriever that makes its own queries, so that it does not use those of an expansion."""
        return None

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return the needs of the stage with a dataset of this size, then those of the stages that search for it.

        They are arithmetic: nothing is loaded, asked or written.
        """
        return [Needs(str(self), seconds=None, note="does not say what it needs")]

    def inside(self, runtime: Runtime) -> tuple[Stage, ...]:
        """Return the stages that do parts of this stage's work, such as the retrievers of a fusion."""
        return ()

    def modules(self, runtime: Runtime) -> tuple[str, ...]:
        """Return the modules of optional parts of r2med that this stage needs here, without those inside it."""
        return ()

    def asks(self, runtime: Runtime) -> bool:
        """Return True if the stage asks an LLM. It then has `preview`, which returns its calls."""
        return False

    def is_recorded(self, runtime: Runtime) -> bool:
        """Return True if the stage reads texts that were written before. It has none for other questions."""
        return False

    def varies(self, runtime: Runtime) -> bool:
        """Return True if another run can give another result: it asks an LLM or a search server, or it shuffles.

        Then its result may depend on `Setup.repeat`. If the store keeps the result, the key must contain the repeat.
        """
        return self.asks(runtime) or any(part.varies(runtime) for part in self.inside(runtime))

    def is_replayed(self, runtime: Runtime) -> bool:
        """Return True if the store keeps the work of the stages inside and answers of LLMs, not the result itself."""
        return any(part.is_replayed(runtime) for part in self.inside(runtime))

    def chooses_forms(self, runtime: Runtime) -> bool:
        """Return True if a retriever chooses the form of a query that it searches. It then gets queries with parts."""
        return False

    def indexing(self) -> Stage:
        """Return the retriever whose index is prepared: this one, or the one inside that searches for it."""
        return self

    def key(self, dataset: Any, runtime: Runtime) -> dict[str, Any]:
        """Return all values that the result depends on, ready for JSON. Nothing is asked, and no weights are loaded."""
        return self.settings()

    def check(self, datasets: Sequence[Any], runtime: Runtime) -> None:
        """Raise UserError for a fault that would stop the stage on one of these datasets. No LLM is called."""

    def example(self, dataset: Any, runtime: Runtime) -> Any:
        """Return the first request to an LLM about the first query, for a plan. None if no LLM is asked."""
        return None

    def expand(self, dataset: Any, runtime: Runtime) -> Any:
        """Return the queries of a dataset with the text that an expansion adds: an Expansion."""
        raise self._lacks(METHODS["expand"])

    def search(self, dataset: Any, queries: Sequence[Any], k: int, runtime: Runtime) -> Any:
        """Return the k best documents of each query: Searched. `Run.of` makes a run from document ids and scores."""
        raise self._lacks(METHODS["retrieve"])

    def rerank(self, dataset: Any, queries: Sequence[Any], run: Any, runtime: Runtime) -> Any:
        """Return the run with its first `depth` documents in a new order: Reranked.

        The other documents follow in their old order. `queries` are those of the run, in its order, with the text that
        an expansion generated. Documents are given as rows of the dataset's corpus.
        """
        raise self._lacks(METHODS["rerank"])

    def _lacks(self, method: str) -> UserError:
        return UserError(f"{type(self).__module__}.{type(self).__qualname__} has no {method}: add it for {self}")


METHODS: Mapping[str, str] = {
    "expand": "expand(dataset, runtime)",
    "retrieve": "search(dataset, queries, k, runtime)",
    "rerank": "rerank(dataset, queries, run, runtime)",
}
"""Kind of stage -> the method that does its work."""


def stage_of(call: Call, kind: Kind) -> Stage:
    """Return the stage of a call. Raises UserError if no stage of this kind has the name, or a setting is wrong."""
    declared: type[Stage] = stage_class(call.name, kind)
    return declared.parse(call)


def retriever_of(calls: Sequence[Call]) -> Stage:
    """Return the retriever of a call. Several calls are fused."""
    parts = tuple(stage_of(call, "retrieve") for call in calls)
    return parts[0] if len(parts) == 1 else stage_class("fuse", "retrieve")(name="fuse", parts=parts)


def described(value: Any) -> str:
    """Return a value of the user's code by its class, for messages."""
    return "None" if value is None else type(value).__qualname__


def key_of(stage: Stage, dataset: Any, runtime: Runtime) -> dict[str, Any]:
    """Return the key of a stage, with a digest of its code if the code is not part of this package."""
    return {**stage.key(dataset, runtime), **foreign_code(type(stage))}


def with_inside(stage: Stage, runtime: Runtime) -> Iterator[Stage]:
    """Yield a stage and all stages that do parts of its work."""
    yield stage
    for part in stage.inside(runtime):
        yield from with_inside(part, runtime)


def modules_of(stage: Stage, runtime: Runtime) -> tuple[str, ...]:
    """Return the modules of optional parts of r2med that a stage needs, with the stages inside it."""
    return tuple(module for part in with_inside(stage, runtime) for module in part.modules(runtime))


def argument(description: str, **more: Any) -> Any:
    """Declare the first value, which is typed without a key, such as the LLM of hyde(o3-mini)."""
    return Field(description=description, json_schema_extra={"at": "argument"}, **more)


def depth_field(default: int = 100) -> Any:
    """Declare the depth of a reranker, typed as NAME@DEPTH."""
    return Field(default, ge=1, le=1_000_000, description="candidates it looks at", json_schema_extra={"at": "depth"})


def derived(default: Any = None, **more: Any) -> Any:
    """Declare a value that comes from the setup. It is not typed and not part of the name."""
    return Field(default, json_schema_extra={"at": "derived"}, **more)


def place_of(field: FieldInfo) -> str:
    """Return where a setting is typed: "argument", "depth", "derived" (never), or empty for KEY=VALUE."""
    extra = field.json_schema_extra
    return str(extra.get("at", "")) if isinstance(extra, dict) else ""


def printed(value: Any) -> str:
    """Return the typed form of a value. All stages use one number format."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, tuple):
        return ("+" if value and isinstance(value[0], Stage) else ":").join(map(printed, value))
    return str(value)


# Types of fields with their own syntax.
def _parts(value: Any) -> Any:
    return tuple(value.split(":")) if isinstance(value, str) else value


Numbers = Annotated[tuple[Annotated[float, Field(ge=0, le=1e9)], ...], BeforeValidator(_parts)]
"""Numbers joined by colons, as in weights=3:1."""
SignedNumbers = Annotated[tuple[Annotated[float, Field(ge=-1e9, le=1e9)], ...], BeforeValidator(_parts)]
"""Numbers joined by colons that may be negative, as in weights=1:-0.5."""
Words = Annotated[tuple[str, ...], BeforeValidator(_parts)]
"""Words joined by colons."""


def _retriever(value: Any) -> Any:
    return retriever_of(parse_stage(value)) if isinstance(value, str) else value


def _retrievers(value: Any) -> Any:
    return tuple(stage_of(call, "retrieve") for call in parse_stage(value)) if isinstance(value, str) else value


Retrieving = Annotated[Stage, BeforeValidator(_retriever), PlainSerializer(lambda value: value.settings())]
"""A retriever as a setting, as in by=bm25(scorer=lucene)."""
Fused = Annotated[
    tuple[Stage, ...],
    BeforeValidator(_retrievers),
    PlainSerializer(lambda values: [value.settings() for value in values]),
]
"""Retrievers joined by plus signs."""


def with_nested(stage: Stage) -> Iterator[Stage]:
    """Yield a stage and all stages in its settings."""
    yield stage
    for field in type(stage).model_fields:
        value = getattr(stage, field)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, Stage):
                yield from with_nested(each)


def holds_stages(field: FieldInfo) -> bool:
    """Return True if the values of a setting are retrievers."""
    return bare_type(field.annotation) in (Stage, tuple[Stage, ...])


def _explained(stage: type[Stage], name: str, error: ValidationError) -> str:
    """Return one line about the first fault in the settings of a stage."""
    first = error.errors()[0]
    key, value, context = str(first["loc"][0]) if first["loc"] else "", first.get("input"), first.get("ctx", {})
    field = stage.model_fields.get(key)
    if first["type"] == "missing" and field is not None and place_of(field) == "argument":
        if stage.takes == "llm":
            return f"{name} needs the name of an LLM, such as {name}(o3-mini), or llm (--llm NAME)"
        return f"{name} needs {field.description}, as in {name}(…)"
    if first["type"] == "missing":
        return f"{name} needs {key}: {field.description if field else ''}"
    if first["type"] == "extra_forbidden":
        return str(_no_setting(stage, key, name))
    if first["type"] == "literal_error" and field is not None:
        choices = [str(choice) for choice in get_args(bare_type(field.annotation))]
        return f"{name}: {key}={value}{nearest(str(value), choices)}: {' or '.join(choices)}"
    if wanted := "yes or no" if first["type"] == "bool_parsing" else expected_type(first["type"]):
        return f"{name}: {key}={str(value)[:80]} is not {wanted}"
    for rule, words in (("ge", "{} or more"), ("gt", "more than {}"), ("le", "{} or less"), ("lt", "less than {}")):
        if rule in context:
            return f"{name}: {key} must be {words.format(printed(context[rule]))}, not {printed(value)}"
    message = first["msg"].removeprefix("Value error, ")
    return message if message.startswith(name) else f"{name}: {key + ': ' if key else ''}{message}"


def _no_setting(stage: type[Stage], key: str, name: str) -> UserError:
    known = stage.typed_settings
    return UserError(f"{name} has no setting {key!r}{nearest(key, known)}: {', '.join(known) or 'it has none'}")


def bare_type(annotation: Any) -> Any:
    """Return a type without its annotations and without None."""
    while True:
        arguments = get_args(annotation)
        if get_origin(annotation) is Annotated:
            annotation = arguments[0]
        elif type(None) in arguments:
            annotation = next(argument for argument in arguments if argument is not type(None))
        else:
            return annotation
