"""Commands for models that can be handed on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from lifeline.errors import MissingExtraError, ModelError


def export(
    checkpoint: Annotated[
        Path,
        typer.Argument(help="A checkpoint's folder, or a run, of which the newest is taken; or weights, .safetensors."),
    ],
    out: Annotated[Path, typer.Option(help="The file to write: .onnx to play by, .safetensors to train from.")],
    half: Annotated[bool, typer.Option("--half", help="Store the weights as float16: half as large.")] = False,
    licence: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Of the model; what the weights say, or this project's own, if not given."),
    ] = None,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="Anything that is to be said in the file.")] = None,
) -> None:
    """Write a checkpoint's network into one file that plays on every board, checked against the network.

    As .safetensors only its weights, for `lifeline train --init-from`.
    """
    try:
        from training import verify
        from training.export import export_onnx, network_config_of
        from training.provenance import find_source
        from training.weights_file import SUFFIX, export_weights
    except ModuleNotFoundError as error:
        raise MissingExtraError("export", error.name, "train") from None
    from dataclasses import asdict

    from lifeline.files import write_atomic

    if out.suffix not in (".onnx", SUFFIX):
        raise typer.BadParameter(
            f"--out must end in .onnx, by which players know a model, or in {SUFFIX}, not {str(out)[:60]!r}"
        )
    if out.is_dir() or not out.parent.is_dir():
        raise ModelError(f"cannot write {out}: {'it is a directory' if out.is_dir() else 'there is no such directory'}")
    source = find_source(checkpoint, licence, note)
    network, weights, entries = network_config_of(json.dumps(source.network)), source.weights, source.entries
    stored = verify.rounded(weights) if half else weights
    export_onnx(network, weights, entries, half)  # what cannot be exported is refused before it is compared
    positions = verify.real_positions()
    wanted = verify.judge(positions, network, stored, _progress("torch"))
    if half:
        full = verify.judge(positions, network, weights, _progress("torch, float32"))
        difference = verify.half_difference(positions, full, wanted)
        entries["half_difference"] = json.dumps(asdict(difference))
        typer.echo(difference.line())
    model = export_onnx(network, weights, entries, half)
    agreement = verify.compare(model, positions, wanted, _progress("ONNX Runtime"))
    typer.echo(agreement.line())
    written = export_weights(network, weights, entries, half) if out.suffix == SUFFIX else model
    try:
        write_atomic(out, written)
    except OSError as error:
        raise ModelError(f"cannot write {out}: {error.strerror or error}") from None
    typer.echo(f"{out}: {source.name}, {network.blocks} blocks of {network.channels}, {len(written) / 1e6:.2f} MB")


def _progress(name: str) -> Callable[[float], None] | None:
    """Shows how far a comparison is, where someone looks."""
    if not sys.stderr.isatty():
        return None

    def show(share: float) -> None:
        typer.echo(f"\r{name}: {share:4.0%}" if share < 1 else "\r\x1b[K", nl=False, err=True)

    return show
