"""Open the page of an update: `explore` starts its server and returns a handle on it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from html import escape
from typing import Any

from commod._data.tables import check_same_rows
from commod._explore.edits import PeopleOfFit
from commod._explore.server import PageServer
from commod._explore.session import Session
from commod._text import shown
from commod.exceptions import InputError, InputTypeError
from commod.updates import ControlledDebiaser

FRAME_HEIGHT = 900  # pixels in a notebook


class Explorer:
    """A page that is being served; made by `explore`.

    Attributes
    ----------
    url : str
        The address of the page, on this machine only. It holds a random token: do not share it.
    update : ControlledDebiaser
        The update as the page shows it now, with all its figures.

    Examples
    --------
    >>> from commod import ControlledDebiaser, ScoreColumn, explore
    >>> X = {"score": [0.4, 0.6] * 100, "age": range(200)}
    >>> groups = ["b" if age < 100 and age % 2 == 0 else "a" for age in X["age"]]
    >>> import pandas as pd
    >>> update = ControlledDebiaser(ScoreColumn("score"), target=0.9, target_on="fit_rows")
    >>> update = update.fit(pd.DataFrame(X), sensitive_features=groups)
    >>> with explore(update, pd.DataFrame(X), sensitive_features=groups) as page:
    ...     page.update is update
    True
    >>> page
    Explorer, stopped
    """

    def __init__(self, session: Session, server: PageServer) -> None:
        self._session = session
        self.url = server.url
        self._end = weakref.finalize(self, _stop, session, server)

    @property
    def update(self) -> Any:
        """Return the update as the page shows it now."""
        return self._session.update

    def stop(self) -> None:
        """Stop the server and a running fit; `update` stays as it is."""
        self._end()

    def wait(self) -> None:
        """Wait until the server is stopped; Ctrl-C ends the wait."""
        while self._end.alive:
            threading.Event().wait(0.5)

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Explorer at {self.url}" if self._end.alive else "Explorer, stopped"

    def _repr_html_(self) -> str:
        if not self._end.alive:
            return "<p>Explorer, stopped</p>"
        return (
            f'<iframe src="{escape(self.url)}" title="Explore the update" '
            f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 1px solid"></iframe>'
        )


def explore(
    update: Any,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any,
    label_names: Mapping[Any, str] | None = None,
) -> Explorer:
    """Open a page on which an update can be changed by hand, and return a handle on it.

    The page shows at once who changes, the groups before and after, the limit and what is expected
    on new people. It is served on the loopback address of this machine. Rows stay in this process:
    the page gets figures, and the reasons of one person where the user asks for them.

    Parameters
    ----------
    update : fitted ControlledDebiaser
        Where to begin. It is never changed.
    X : table of shape (n, n_features)
        The rows, as in `fit`: those that the update was fitted on, or others.
    y : array-like of shape (n,), default=None
        True labels.
    sensitive_features : array-like of shape (n,) or (n, n_sensitive)
        The group of each row.
    label_names : mapping of label to str, default=None
        What the labels mean: ``{0: "low risk", 1: "high risk"}``.

    Returns
    -------
    Explorer
        It has `url`, `update` (as the page shows it now) and `stop()`. A notebook shows the page.

    Examples
    --------
    >>> from commod import ControlledDebiaser, ScoreColumn, explore
    >>> from commod.datasets import make_biased
    >>> data = make_biased(400, random_state=0)
    >>> X = data.data.assign(score=data.data["x0"].rank(pct=True).clip(0.01, 0.99))
    >>> update = ControlledDebiaser(ScoreColumn("score"), target=0.8, target_on="fit_rows")
    >>> update = update.fit(X, data.target, sensitive_features=data.sensitive_features)
    >>> page = explore(update, X, data.target, sensitive_features=data.sensitive_features)
    >>> page.url.startswith("http://127.0.0.1:")
    True
    >>> page.update is update
    True
    >>> page.stop()
    """
    people = PeopleOfFit(X, y, sensitive_features)
    return serve(open_session(update, people, label_names), in_notebook=True)


def open_session(
    update: Any, people: PeopleOfFit, label_names: Mapping[Any, str] | None = None
) -> Session:
    """Return the session of an update; everything is read and counted once, so errors come here."""
    if not isinstance(update, ControlledDebiaser) or not hasattr(update, "scorecard_"):
        raise InputTypeError(
            f"explore needs a fitted ControlledDebiaser; got {shown(update)}. Other methods state "
            "no target that edits could be held to."
        )
    if update.fitted_param("confidence") is not None:
        raise InputError(
            "explore cannot edit an update that was fitted with confidence: its promise was tested "
            "for other points. Fit it with confidence=None.",
            parameter="confidence",
        )
    given = people._asdict()
    check_same_rows({"X": given.pop("X"), **given})
    session = Session(update, people, label_names)
    session.state()
    return session


def serve(session: Session, *, in_notebook: bool, port: int = 0) -> Explorer:
    """Start the server of a session in a thread of its own."""
    server = PageServer(session, in_notebook=in_notebook, port=port)
    threading.Thread(target=server.serve_forever, name="commod-page", daemon=True).start()
    session.warm_up()
    return Explorer(session, server)


def _stop(session: Session, server: PageServer) -> None:
    server.shutdown()
    server.server_close()
    session.close()
