"""Runs behind HTTP, as clients of LibreTranslate and OpenAI already speak it.

gate        who may come in, how often and with how much
switchboard questions straight to their endpoint, pages through FastAPI
strict      questions: read strictly, described on the page
assembly    the application: the interfaces below, and what every failure looks like
libretranslate, openai, own
            the interfaces: a request becomes a ``Job``, its answers a reply
shelf       runs by name: loaded when first asked for, again when their folder changes
batching    texts of all requests to one run, answered together in one thread
post        their answers, handed to the event loop once a batch
process     a socket, and an orderly end
"""
