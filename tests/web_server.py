"""A server of the page, listening, for tests: in a thread of this process."""

import threading
from contextlib import contextmanager

from lifeline.play.server import Server, Settings
from lifeline.play.server_bots import rollout_bot
from lifeline.play.server_run import listen, uvicorn_server


@contextmanager
def serving(bots=None, **settings):
    """Serve on a free port; gives the address, without a slash at its end, and the server."""
    server = Server(bots or (rollout_bot(),), Settings(**{"simulations": 8, **settings}))
    connection = listen("127.0.0.1", 0)
    listener = uvicorn_server(server)
    thread = threading.Thread(target=listener.run, kwargs={"sockets": [connection]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{connection.getsockname()[1]}", server
    finally:
        listener.should_exit = True
        thread.join()
        server.close()
        connection.close()
