@0xc5d7e2a94b1f3068;
# The data service: what a dispatcher, data workers and consumers say to each other. All of them serve at endpoint 0. Who may make a
# call is told by the role in the hello: a data worker is known by the incarnation there.

using Cxx = import "/capnp/c++.capnp";
using Core = import "/core/graph/graph.capnp";
$Cxx.namespace("cairn::wire");

struct DataTask {
  job @0 :UInt64;
  number @1 :UInt64;
}

# What of the dataset a task reads; service/dispatcher/splits.h.
struct DataPiece {
  kind @0 :UInt8;
  begin @1 :Int64;
  end @2 :Int64;
  workers @3 :Int64;
  worker @4 :Int64;
  order @5 :Int64;
}

struct DataWorkerPlace {
  address @0 :Text;
  incarnation @1 :UInt64;
}

# A round of a group of consumers; service/dispatcher/round_book.h.
struct DataRound {
  worker @0 :DataWorkerPlace;
  number @1 :UInt64;
}

interface DataDispatcher {
  # ---- consumers ----
  # Makes the job of this key, or joins it: then mode, description and consumers have to be the job's. May be repeated. `consumers`: of
  # the group that reads it in rounds; 0: each reads for itself.
  openJob @0 (key :Text, mode :UInt8, description :Data, consumers :UInt32) -> (job :UInt64);
  # Answers when something has changed since `seen` (0: nothing was seen yet), or after a second. `handed`: elements that this
  # consumer's program has been given so far. Data workers that hold elements
  # are listed by a dispatcher that was started again, too: it knows the tasks that they were dealt.
  watch @1 (job :UInt64, consumer :UInt64, handed :UInt64, seen :UInt64)
      -> (change :UInt64, workers :List(DataWorkerPlace), finished :Bool);
  # The consumer needs nothing more. `elements`: of the tasks that are done; `handed`: to all consumers, duplicates included.
  leave @2 (job :UInt64, consumer :UInt64, handed :UInt64) -> (elements :UInt64, handed :UInt64);

  # ---- data workers ----
  # Registers the caller, and shows that it lives. `running`: tasks that it holds; those in `drop` are not its own any more.
  report @3 (address :Text, running :List(DataTask)) -> (drop :List(DataTask));
  describe @4 (job :UInt64) -> (mode :UInt8, description :Data, name :Text, consumers :UInt32);
  # A task, or none for the moment, after a second. `running`: numbers of the job's tasks that the caller has; one that it was dealt
  # and does not have was lost on the way, and is dealt again.
  nextTask @5 (job :UInt64, running :List(UInt64)) -> (found :Bool, number :UInt64, piece :DataPiece, finished :Bool);
  # All of the task's elements were acknowledged by consumers. May be repeated.
  finish @6 (job :UInt64, number :UInt64, elements :UInt64) -> ();

  status @7 () -> (json :Text);

  # ---- consumers that read in rounds ----
  # Tells what a consumer of a group has and knows, and gives the order of rounds from there on: at once, or, where there is nothing
  # new and it waits, within a second. May be repeated. `group`: as it was answered first; 0: this consumer begins.
  rounds @8 (job :UInt64, index :UInt32, consumer :UInt64, group :UInt64, sequence :UInt64, base :UInt64, known :List(DataRound),
             here :List(DataRound), taken :UInt64, wait :Bool)
      -> (group :UInt64, base :UInt64, begin :UInt64, rounds :List(DataRound), missing :List(UInt32), behind :List(UInt32));
}

struct DataElement {
  number @0 :UInt64;           # by which it is acknowledged; of this process
  columns @1 :List(Core.TensorData);
  packed @2 :Data;             # instead of the columns: DataColumns as a flat message, compressed by zlib
  rawBytes @3 :UInt64;         # of that message
}

struct DataColumns {
  columns @0 :List(Core.TensorData);
}

interface DataWorker {
  # At most `most` elements; none after a second. What a connection was sent and did not acknowledge is given out again when it ends,
  # or when its consumer calls on another one. `error`: the job's pipeline has failed; the text of a failed call.
  # `compression`: 2 for zlib; else elements come as they are. `index`: of the consumer in the group that reads in rounds; of n consumers
  # it is given the elements whose number less 1 leaves it when divided by n, and the quotient is the round.
  get @0 (job :UInt64, consumer :UInt64, most :UInt32, compression :UInt8, index :UInt32) -> (elements :List(DataElement), error :Text);
  # The program has them. May be repeated, on any connection.
  acknowledge @1 (job :UInt64, numbers :List(UInt64)) -> ();
  status @2 () -> (json :Text);
}
