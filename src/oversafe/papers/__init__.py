"""The five papers: their tables, published and measured."""

from oversafe.papers.reproduction import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
