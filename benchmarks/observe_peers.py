"""Walks one application's window through libatspi or dogtail and prints the times; run by `observe.py`.

Runs under the system's Python, which has gi, pyatspi and dogtail. Reads of each node what Surehand reads: role, name,
description, states, interfaces, extents, actions, value, text, relations, children.
"""

import contextlib
import json
import os
import statistics
import sys
import time


def walk_libatspi(application, window_title):
    found = next(child for child in children(application) if child.get_name() == window_title)
    count, waiting = 0, [found]
    while waiting:
        node = waiting.pop()
        count += 1
        read(node)
        waiting.extend(children(node))
    return count


def children(node):
    return [child for child in (node.get_child_at_index(i) for i in range(node.get_child_count())) if child]


def read(node):
    node.get_role()
    node.get_name()
    node.get_description()
    node.get_state_set().get_states()
    node.get_interfaces()
    try:
        node.get_relation_set()
        if node.is_component():
            node.get_extents(0)
        if node.is_action():
            for index in range(node.get_n_actions()):
                node.get_action_name(index)
        if node.is_value():
            node.get_current_value()
        if node.is_text():
            node.get_text(0, min(4096, node.get_character_count()))
    except Exception:  # noqa: BLE001 - libatspi raises whatever the application answers
        return


def measure(job, rounds):
    count, taken = 0, []
    for _ in range(rounds):
        started = time.perf_counter()
        count = job()
        taken.append((time.perf_counter() - started) * 1000)
    return {"first": taken[0], "again": statistics.median(taken[1:] or taken), "nodes": count}


def libatspi(name, title, cache):
    import gi

    gi.require_version("Atspi", "2.0")
    from gi.repository import Atspi

    Atspi.init()
    desktop = Atspi.get_desktop(0)
    application = next(child for child in children(desktop) if child.get_name() == name)
    if not cache:
        application.set_cache_mask(Atspi.Cache.NONE)
    return measure(lambda: walk_libatspi(application, title), 6)


def dogtail(name, title):
    sys.argv = ["dogtail"]
    from dogtail.config import config

    config.logDebugToStdOut = config.logDebugToFile = False
    config.searchCutoffCount = 1
    config.checkForA11y = False  # it asks the person's settings, which a desktop of its own has none of
    from dogtail import tree

    window = next(w for w in tree.root.application(name).children if w.name == title)

    def walk():
        nodes = [window, *window.findChildren(lambda _: True)]
        for node in nodes:
            _ = node.roleName, node.name, node.description, node.getState().getStates()
            if node.actions:
                _ = list(node.actions)
            with contextlib.suppress(Exception):
                _ = node.position, node.size
        return len(nodes)

    return measure(walk, 3)


if __name__ == "__main__":
    how, application_name, window_title = sys.argv[1:4]
    os.environ["GTK_MODULES"] = ""
    jobs = {
        "cached": lambda: libatspi(application_name, window_title, cache=True),
        "uncached": lambda: libatspi(application_name, window_title, cache=False),
        "dogtail": lambda: dogtail(application_name, window_title),
    }
    result = jobs[how]()
    print("RESULT " + json.dumps(result))
