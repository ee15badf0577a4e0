@0xc2f4b7a1935de860;
# What a coordinator's journal holds (coordinator/journal/journal_event.h), record by record. A number that has gone is `retired`
# and never read.

using Cxx = import "/capnp/c++.capnp";
using Core = import "/core/graph/graph.capnp";
using Rpc = import "/rpc/cairn.capnp";
using Rows = import "/rpc/rows.capnp";
$Cxx.namespace("cairn::journal::wire");

# Events in their order, written by one write.
struct Record {
  events @0 :List(Event);
}

struct Event {
  union {
    opened @0 :Opened;
    function @1 :Function;
    variable @2 :Variable;
    dataset @3 :Dataset;
    shards @4 :Shards;
    sent @5 :Sent;
    ended @6 :Ended;
    announced @7 :Announced;
    rebuilt @8 :Rebuilt;
    standing @9 :Standing;
    sources @10 :Sources;
    round @11 :Round;
    known @12 :Rows.AppliedSet;      # closures that are told of elsewhere
    note @13 :Note;
  }
}

struct Opened {
  format @0 :UInt32;
  cluster @1 :Text;
  session @2 :UInt64;
  term @3 :UInt64;
  holder @4 :Text;
  consistency @5 :Text;
}

struct Function {
  id @0 :UInt32;
  name @1 :Text;
  graph @2 :Data;
  takesWorkerIndex @3 :Bool;
  replicas @4 :Int32 = 1;
}

struct Variable {
  id @0 :UInt32;
  layout @1 :Rpc.VariableLayout;   # with a given initial value
}

struct Dataset {
  name @0 :Text;
  firstPipeline @1 :UInt64;
  descriptions @2 :List(Data);
  spec @3 :Core.ElementSpec;
  shared @4 :Bool;
  positions @5 :List(Position);    # where its pipelines begin
}

struct Shards {
  layout @0 :UInt64;               # the version of the layout
  seed @1 :UInt64;
  shards @2 :List(Rpc.ShardLayout);
}

struct Take {
  pipeline @0 :UInt64;
  ordinal @1 :UInt64;
  count @2 :UInt32;
}

struct Sent {
  sequence @0 :UInt64;
  function @1 :UInt32;
  layout @2 :UInt64;               # the oldest that has all its variables
  step @3 :Int64;
  arguments @4 :List(Core.TensorData);
  perWorker @5 :List(PerWorker);   # beside the arguments; empty: there are none
  datasets @6 :List(UInt64);       # the first pipeline of each
  takes @7 :List(Take);
}
struct PerWorker {
  values @0 :List(Core.TensorData);  # empty: the argument is the same for all
}

struct Ended {
  sequence @0 :UInt64;
  updated @1 :Bool;                # its update is committed
  steps @2 :Int64;                 # that were committed with it
  sentLayout @3 :UInt64;
  states @4 :List(State);          # beside its takes; empty: none is known
}
struct State {
  ordinal @0 :UInt64;
  state @1 :Data;
}

# The sum of its members' shares is applied on every shard.
struct Round {
  number @0 :UInt64;
  step @1 :Int64;
  members @2 :List(Member);        # by their numbers
}
struct Member {
  number @0 :Int32;
  sequence @1 :UInt64;             # of its closure
  sentLayout @2 :UInt64;
}

struct Announced {
  closuresBelow @0 :UInt64;
  settledBelow @1 :UInt64;         # these have ended
}

struct Holdings {
  covers @0 :UInt64;
  missing @1 :List(UInt64);
}

struct Rebuilt {
  ps @0 :UInt32;
  layout @1 :UInt64;
  from @2 :Holdings;
  applied @3 :Rows.AppliedSet;     # of this session, by the checkpoint; absent: none
  processes @4 :List(UInt64);      # that have the rows, by the ps's shards; 0: that one had them before
}

# A checkpoint that rows come from, and which of them.
struct Source {
  folder @0 :Text;
  include @1 :List(Text);
  exclude @2 :List(Text);
  rename @3 :List(Rename);
  withoutSlots @4 :Bool;
  rows @5 :List(Numbers);
  onDemand @6 :Bool;
  partial @7 :Bool;
  holdings @8 :Holdings;
  newData @9 :Bool;
  positionsOf @10 :List(Text);
}
struct Rename {
  from @0 :Text;
  to @1 :Text;
}
struct Numbers {
  variable @0 :Text;
  numbers @1 :List(UInt32);        # 2^32 - 1: the row is left out
}
struct Sources {
  restored @0 :Source;             # absent: there is none
  newest @1 :Source;
  restoring @2 :Bool;
}

struct Position {
  name @0 :Text;
  next @1 :UInt64;
  open @2 :List(Take);
  states @3 :List(State);
  ended @4 :Bool;
}

struct Standing {
  step @0 :Int64;
  closuresBelow @1 :UInt64;
  committed @2 :UInt64;
  lost @3 :UInt64;
  lostBefore @4 :UInt64;
  lostUndone @5 :UInt64;
  missing @6 :List(UInt64);        # by ps
  rebuilt @7 :List(Rebuilt);       # by ps
  positions @8 :List(Position);    # by pipeline
}

# The program leaves this text for a successor.
struct Note {
  name @0 :Data;
  text @1 :Data;                   # empty: what had this name is taken back
}
