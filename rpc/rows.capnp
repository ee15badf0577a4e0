@0xd1c97b6f05a4e83b;
# Rows as they travel: what pulls, pushes and the records of a primary's log are made of. rpc/cairn.capnp has the services.
# A number that has gone is `retired` and never read.

using Cxx = import "/capnp/c++.capnp";
using Core = import "/core/graph/graph.capnp";
$Cxx.namespace("cairn::wire");

# Travels with every pull and push; cairn::StepContext in memory.
struct Step {
  session @0 :UInt64;
  sentLayout @1 :UInt64;       # the version of the layout by which it was sent
  closure @2 :UInt64;
  incarnation @3 :UInt64;      # the lane's
  retired @4 :UInt64;
  globalStep @5 :Int64;
  replica @6 :Int32;
  replicas @7 :Int32 = 1;
  pushNumber @8 :UInt32;
  round @9 :UInt64;            # of which a push is a share, kept until `applyRound`; 0: it is applied when it comes
  epoch @10 :UInt64;           # of the shard's primary, by the layout that the sender goes by: an older one is refused with Aborted
}

# A shard's state: another lineage always reads as changed.
struct Version {
  lineage @0 :UInt64;
  counter @1 :UInt64;          # pushes applied
}

# One part of one variable on this shard.
struct Part {
  variable @0 :UInt32;
  index @1 :UInt32;            # which part of the variable
  begin @2 :Int64;             # its rows, half-open, of the whole variable
  end @3 :Int64;
}

struct Table {
  variable @0 :UInt32;
  spec @1 :Core.VariableSpec;
  rule @2 :Core.UpdateRule;    # the rule that has slots; an assignment if none
  parts @3 :List(Part);        # those of this shard only
}

enum Encoding {
  raw @0;                      # the variable's dtype, little-endian
  bfloat16 @1;                 # float32 rounded to bfloat16
}

struct ReadHeader {
  variable @0 :UInt32;
  part @1 :UInt32;             # index of the part
  rows @2 :UInt32;             # how many of `ids` belong to it; 0 with whole
  whole @3 :Bool;
  written @4 :UInt64;          # with whole: the last write in the copy that the caller has, as a pull of it said; 0: there is no copy
}

struct UpdateHeader {
  variable @0 :UInt32;
  part @1 :UInt32;
  rows @2 :UInt32;
  whole @3 :Bool;
  rule @4 :Core.UpdateRule;
  learningRate @5 :Float32;
}

struct Range {                 # of closure sequence numbers, half-open
  begin @0 :UInt64;
  end @1 :UInt64;
}

# The closures whose pushes a shard has applied: all below the watermark, and these.
struct AppliedSet {
  lowWatermark @0 :UInt64;
  closures @1 :List(Range);
}

# A closure whose share is part of a round's sum, and the layout's version by which its last run was sent.
struct RoundMember {
  closure @0 :UInt64;
  sentLayout @1 :UInt64;
}

# ---- what a primary tells its backups ----

# What a primary tells the backups of its rows, in the order in which it happened; bulk goes as `payload` beside it.
struct Record {
  union {
    books @0 :ShardBooks;      # the first of a stream: all rows go to their initial values, `rows` has those that differ
    rows @1 :CopiedRows;
    push :group {              # or a slice of one; or, where its step names a round, a share of that. Payload: row numbers, header after header,
                               # then values
      step @2 :Step;
      slice @3 :UInt32;
      encoding @4 :Encoding;
      headers @5 :List(UpdateHeader);
    }
    round :group {             # the sum of a round. Payload likewise
      round @6 :UInt64;
      members @7 :List(RoundMember);
      sums @8 :List(UpdateHeader);
    }
    announced :group {
      closuresBelow @9 :UInt64;
      settledBelow @10 :UInt64;
    }
    complete @11 :Void;        # all rows have come
    probe @12 :Void;           # nothing has happened: the answer shows that the backup still follows
    sums :group {              # of rows as they are at this place of the log, each 64 of them one: a copy has the same
      variable @13 :UInt32;
      part @14 :UInt32;
      rowBytes @15 :UInt32;    # with slots, of this rule. A table that has others, or is not there, is not compared
      rule @20 :UInt16;
      begin @16 :Int64;        # the first of the rows, local, which follow each other; of a hashed table the payload has their numbers
      rows @17 :UInt32;
      held @18 :Int64;         # rows of the table in all
      sums @19 :List(UInt64);
    }
  }
}

# What a shard knows besides its rows.
struct ShardBooks {
  session @0 :UInt64;
  version @1 :Version;
  firstLayout @2 :UInt64;
  step @3 :UInt64;
  lowWatermark @4 :UInt64;
  announced @5 :UInt64;
  applied @6 :List(AppliedPush); # by closures, ascending
  tables @7 :List(TableBooks);
  shares :group {              # of rounds
    copied @8 :Bool;           # they follow, as records: those that are there, and each that comes
    over @9 :UInt64;           # the newest round that is over, and all before it are
    lost @10 :List(UInt64);    # rounds of which shares are gone, ascending
  }
}
struct AppliedPush {
  closure @0 :UInt64;
  number @1 :UInt32;
  slice @2 :UInt32;
  counter @3 :UInt64;
}
struct TableBooks {
  variable @0 :UInt32;
  part @1 :UInt32;
  updates @2 :Int64;
  written @3 :UInt64;
}
# Rows of one part. Payload: a record of a checkpoint (docs/checkpoint-format.md), key and value.
struct CopiedRows {
  variable @0 :UInt32;
  part @1 :UInt32;
  keyBytes @2 :UInt32;
}

# A backup of a shard, as its primary sees it.
struct BackupState {
  ps @0 :UInt32;
  endpoint @1 :UInt32;
  process @2 :UInt64;
  caughtUp @3 :Bool;           # it has all rows, and from then on no push is answered before it has it
  trouble @4 :Text;            # why it is sent nothing any more; empty: nothing is wrong
  behind @5 :UInt64;           # records that it has not acknowledged
  rowBytes @6 :UInt64;         # that were copied to it
}
