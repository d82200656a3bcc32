"""Base views over sources that are not copied: consistent, though the sources only report updates and answer queries.

A source takes no locks for us and knows nothing of views. While one of our queries is on its way, more updates commit,
and the answer has seen them: it is *contaminated*. The algorithms here compensate for that. Each is a state machine
without I/O, a class with ``on_update`` and ``on_answer`` that return messages; :mod:`~strandline.integrate.algorithms`
lists them, :mod:`~strandline.integrate.choose` picks one.

**The border to a driver.** A machine never sees a row. It works on references to bags and on plans over them, so its
state (:mod:`~strandline.integrate.state`) is small, and rows may live in memory or in tables.

- In: :class:`~strandline.integrate.messages.Update`, one committed transaction of one source, with the warehouse's
  number for it (growing in order of arrival), the source's own sequence number, and how many rows it inserts into and
  deletes from each relation. The rows themselves stand for the operands ``delta``, ``come`` and ``gone`` of
  :mod:`~strandline.integrate.messages`. :class:`~strandline.integrate.messages.Answer`, which names its query; its rows
  stand for the bags ``answer_bag(query, tag)``.
- Out: :class:`~strandline.integrate.messages.Query` (source, id, and terms by tag, to be evaluated in *one* snapshot of
  the source), :class:`~strandline.integrate.messages.Evaluate` (a plan over bags into a new bag) and
  :class:`~strandline.integrate.messages.Install` (what is added to the view and to auxiliary views, all at once; from
  then on the view shows all updates up to a number). Messages are carried out in order.
- State and messages of one event are recorded together; then a crash in the middle loses nothing: new bags have names
  that follow from the event, so that evaluating or asking again is harmless, and an install says what the view shows
  after it, so that a driver sees whether it was done.
- **Order.** The machines rest on one FIFO channel per source for notices and answers. A change log and a query
  connection are two. A driver learns which transactions an answer saw (``Answer.seen``), and
  :mod:`~strandline.integrate.one_channel` makes one order of both: an answer waits for the updates that it saw, and one
  that has missed an update delivered already is asked again.

:mod:`~strandline.integrate.memory` is the driver's side in memory, :mod:`~strandline.integrate.network` a network of
sources to simulate, :mod:`~strandline.integrate.levels` the checker of consistency levels.
"""
