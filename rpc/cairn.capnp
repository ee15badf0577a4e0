@0xb6f1c0d5a7e39241;
# Cairn's services. One protocol for control and data; docs/wire-protocol.md explains it.
#
# Every process listens on one address with numbered endpoints: 0 is its control service, 1 and up are its shards (a ps) or its
# lanes (a worker). The hello that opens a connection names the endpoint. Errors carry a code of core/base/error.h.
# The role in the hello decides which calls a process may make. A number that has gone is `retired`
# and never read.

using Cxx = import "/capnp/c++.capnp";
using Core = import "/core/graph/graph.capnp";
using Rows = import "/rpc/rows.capnp";
using Rows.Step;
using Rows.Version;
using Rows.Table;
using Rows.Encoding;
using Rows.ReadHeader;
using Rows.UpdateHeader;
using Rows.AppliedSet;
using Rows.RoundMember;
using Rows.Record;
using Rows.BackupState;
$Cxx.namespace("cairn::wire");

# ---- the control service of a ps and of a worker ----

struct TaskStatus {
  incarnation @0 :UInt64;
  threads @1 :UInt32;          # its shards (ps) or lanes (worker)
  session @2 :UInt64;          # that it was last configured for; 0: none
  owner @3 :Text;              # the newest coordinator that has joined; empty: none has
  silentMs @4 :UInt32;         # since that one was last heard of; of none, since the task began
}

# A coordinator asks for its place here before it configures anything. While another one is at work here, that is named in `owner`,
# and the place is granted only with `takeOver`, which ends the other's connection. A coordinator counts as gone when its
# connection has ended or nothing was heard of it for `silenceMs`. One that goes on with the same session in a later term, which its
# hello says, gets the place at once; one of an earlier term never does, and nothing that it calls here is done any more.
struct Claim {
  session @0 :UInt64;
  who @1 :Text;                # for people: process and host
  silenceMs @2 :UInt32;
  takeOver @3 :Bool;
}
struct ClaimAnswer {
  granted @0 :Bool;
  owner @1 :Text;              # the coordinator that was found at work; empty: none
  configured @2 :UInt64;       # the session that this process was last configured for; 0: none
  newestTerm @3 :UInt64;       # of those who have joined here with the caller's session
}

interface TaskControl @0xff88cc8fdcc1e185 {
  ping @0 () -> (status :TaskStatus);
  status @1 () -> (json :Text);            # for people and `cairn status`
  shutdown @2 (reason :Text) -> ();
  join @3 (claim :Claim) -> (answer :ClaimAnswer);
}

# ---- ps ----

enum Arithmetic {                # of matrix products
  float32 @0;
  tf32 @1;
  bfloat16 @2;
  mixedBfloat16 @3;
}

struct FileInfo {
  name @0 :Text;               # relative to the checkpoint's folder
  bytes @1 :UInt64;
  checksum @2 :UInt64;
}

# How a checkpoint holds rows; the numbers are those of storage/row_encoding.h.
struct RowEncoding {
  rows @0 :UInt8;
  slots @1 :UInt8;
  compression @2 :UInt8;
  variables @3 :List(Text);    # that `rows` and `slots` are said of
}

# Which rows of a checkpoint a variable takes.
struct RestoreMove {
  variable @0 :Text;           # of this session
  from @1 :Text;               # the checkpoint's variable
  slots @2 :Bool = true;       # false: rows come without their slots, and count no updates
  rows @3 :Int64;              # of the variable of this session
  numbers @4 :List(UInt32);    # by the checkpoint's row: the row it becomes, or 2^32 - 1: it is left out. Absent: rows keep their numbers
}

# Bulk that lies in the memory that dialler and acceptor share (offered with the hello): a multiple of 8, and how many bytes.
struct Place {
  offset @0 :UInt64;
  bytes @1 :UInt64;
}

# One part of a variable in an answer of `changes`.
struct ChangedTable {
  variable @0 :UInt32;
  part @1 :UInt32;
  rows @2 :UInt32;             # how many of the answer's rows are its own
  gone @3 :UInt32;             # of `gone` likewise
  begins @4 :Bool;             # the subscriber's copy is void: all rows that differ from their initial values follow
  complete @5 :Bool;           # with this answer all that was to follow the last `begins` has come
}

interface Shard {
  # Rows by local number (row - part.begin), int64, header after header in `ids`; values come back in the same order,
  # row after row, in one blob. At most 4 MB of values a call: the caller cuts larger reads. With `idsAt` the ids lie there; with
  # `valuesAt` the values go there, and there has to be room for just those.
  # `written` is the number of the last write of each part that is read as a whole, in their order; never 0. Of
  # what the caller has a copy of (`written` in its header), made from lineage `copiesOf`, no values come if it is still the same.
  pull @0 (step :Step, headers :List(ReadHeader), ids :Data, encoding :Encoding, idsAt :Place, valuesAt :Place, copiesOf :UInt64)
      -> (version :Version, values :Data, written :List(UInt64));

  # Applied once for each (session, closure, pushNumber, slice). Larger pushes come in `pieces` calls with piece 0.. pieces-1, applied
  # together when the last has come; rows of a large dense part as slices 1.. of it, each applied when it comes (slice 0: all other
  # rows of the push). Values follow each other in `values`, or each header's lie where `valuesAt` says, one place a header.
  # `pulled` is the version that the closure's pull saw: of another lineage the push is refused with Aborted (rerun the closure). A fenced incarnation gets Cancelled. `duplicate`: it had been applied before.
  push @1 (step :Step, pulled :Version, headers :List(UpdateHeader), ids :Data, values :Data, encoding :Encoding,
           piece :UInt32, pieces :UInt32 = 1, idsAt :Place, valuesAt :List(Place), slice :UInt32)
      -> (version :Version, staleness :UInt64, duplicate :Bool);

  # Makes the tables of this shard as given: new ones from their initial values, slots added where a rule now asks for
  # them, others untouched. A new session forgets closures, fences and tables of the old one.
  # Until `open` a shard answers pull and push with Unavailable.
  # `epoch` is the one in which this process answers for the rows. It never goes back in a session.
  configure @2 (session :UInt64, layoutVersion :UInt64, seed :UInt64, tables :List(Table), epoch :UInt64) -> (version :Version);
  open @3 () -> ();

  # Refuses from now on what lane incarnations up to `newest` send, other than those `alive`. The coordinator numbers them upwards.
  fence @4 (session :UInt64, newest :UInt64, alive :List(UInt64)) -> ();

  # The cut: freezes the state as of now for `save`; training goes on. One mark at a time. A checkpoint may take
  # several attempts; each has a number of its own.
  # With `base`, the number of an earlier mark whose checkpoint is whole, only rows that changed since that are frozen (`delta`), if
  # the shard knows them: `track` has it note them from this mark on.
  # A `passing` mark leaves what is noted as it is, so that the mark that it was noted since may still be a base.
  mark @5 (attempt :UInt64, base :UInt64, track :Bool, passing :Bool) -> (version :Version, applied :AppliedSet, delta :Bool);
  # Writes the frozen state to a database of this shard's in the checkpoint's `folder`, then drops the mark.
  # `encoding`: absent: exact. `databaseRows`: of each database, in the order in which `files` names them.
  save @6 (attempt :UInt64, folder :Text, encoding :RowEncoding)
      -> (files :List(FileInfo), rows :UInt64, bytes :UInt64, databaseRows :List(UInt64));
  dropMark @7 (attempt :UInt64) -> ();
  # Loads the rows of this shard's parts of `variables` (ids; empty: of all its tables) from the databases of a checkpoint
  # (those of any layout). `applied` is merged into the set (of all tables: becomes the set). The shard is closed until the
  # next open(). From no database: a new beginning, as if the tables had just been made. `moves`: those of the variables whose rows
  # are not simply those of the checkpoint's variable of the same name and shape. `onDemand`: answered as soon as the shard may be
  # opened. `later`: rows are still to come; they do when calls want them, and by and by (awaitRestore).
  restore @8 (folder :Text, databases :List(Text), applied :AppliedSet, variables :List(UInt32), moves :List(RestoreMove), onDemand :Bool)
      -> (rows :UInt64, bytes :UInt64, later :Bool);

  # The coordinator's word on the closures of its session: their numbers lie below `closuresBelow`, and those below `settledBelow`
  # have ended. A push of a closure at or above the one is refused with InvalidArgument, of one below the other it is a duplicate.
  # Neither ever goes back. Said before `open`, and again well before the numbers are used up.
  announce @9 (session :UInt64, closuresBelow :UInt64, settledBelow :UInt64) -> ();

  # Sums what the members have pushed as shares of this round, in the order of `members`, and applies the sum once; forgets every
  # share of this round and of those before it. A push that comes later as a share of one of them is a duplicate. Again: nothing, as
  # the members are known to be applied. Aborted: shares of theirs are gone with a process or a restore (run all of them again).
  applyRound @10 (session :UInt64, round :UInt64, members :List(RoundMember)) -> (version :Version);

  # Rows [begin, begin + rows) of a dense part by local number, each with its slots behind it, as a checkpoint holds them; and how many
  # updates by optimizers the part has had. At most 4 MB of rows a call, or one row. `version` and `written` say as of which write:
  # calls that tell both alike have read one state of the part.
  readState @11 (session :UInt64, variable :UInt32, part :UInt32, begin :Int64, rows :UInt32, epoch :UInt64)
      -> (updates :Int64, rows :Data, version :Version, written :UInt64);

  # Answered when all rows are there that restores on demand have left to come; with their error, if they do not come any more. Until
  # then nothing can be marked (Unavailable).
  awaitRestore @12 () -> ();

  # For checkpoints whose databases lie in a local folder of each ps ("/data/ps-0/rows-SESSION-ATTEMPT/ps-0-shard-0").
  # Whether each of these databases is on this machine: why not, in their order; empty: it is.
  findDatabases @13 (databases :List(Text)) -> (troubles :List(Text));
  # Removes folders "rows-SESSION-ATTEMPT", with all that is in them; those that are not on this machine are gone already.
  removeRows @14 (folders :List(Text)) -> ();

  # ---- for readers, who follow the rows and change nothing ----
  # The tables, which must be open. `description` numbers them: another one, other tables. A given initial value is not told; rows of
  # such a variable are all sent.
  describe @15 () -> (description :UInt64, session :UInt64, seed :UInt64, step :Int64, tables :List(Table));
  # Rows that have changed since the subscriber's cursor, as they are now: each header's local numbers in `rows`, values beside them;
  # rows that left for good in `gone`. The subscriber chooses its own number at random, and says the newest `incarnation` and `cursor`
  # that it was told. That acknowledges them. With the cursor before, the last answer is repeated, as its rows are now; with any other,
  # all tables begin anew. About `bytesMax` at most, and never more than 4 MB and a row. `variables`: numbers; none: all.
  # Another `description` than the caller's: nothing is answered but it. `ageUs`: every change that is older has been sent, though
  # perhaps before the last `begins`. `more`: ask again at once.
  changes @16 (subscriber :UInt64, description :UInt64, incarnation :UInt64, cursor :UInt64, bytesMax :UInt32, variables :List(UInt32))
      -> (description :UInt64, incarnation :UInt64, cursor :UInt64, tables :List(ChangedTable), rows :Data, gone :Data, values :Data,
          step :Int64, ageUs :UInt64, more :Bool);
  # The newest values of rows by local number, as `pull` has them; rows of a hashed table that are not there read as their initial
  # values, and are not made. Another `description` than the caller's: no values, and it is answered.
  readRows @17 (description :UInt64, headers :List(ReadHeader), ids :Data) -> (description :UInt64, values :Data, step :Int64);

  # ---- replicas ----
  # From a primary, a ps, to a shard that is configured alike and not opened, its backup: the record of this number, of this stream.
  # A stream begins with `books`, number 0. `epoch` is the primary's. A large payload comes in several calls of one number; all but the
  # last say `more`. What is not the next one, or of another epoch or stream, changes nothing: FailedPrecondition.
  record @18 (epoch :UInt64, stream :UInt64, number :UInt64, record :Record, payload :Data, more :Bool) -> ();
  # From the coordinator to a primary: these, and no others, are its backups. To one that is new here, by its process and place, rows
  # are copied while training goes on. One that is not among them is not waited for any more.
  # `leased`: it has backups, or may get some, of which one could become the primary unnoticed. Until the next setBackups, or another
  # epoch, pulls and pushes are then answered only within 1 s of a sign of the coordinator or of all backups that have caught up; after
  # that they first ask those backups, and are Unavailable if they do not answer within 1 s.
  # `shares`: backups get the shares of rounds as well, each before it is answered, so that one which becomes the primary can apply the
  # rounds that have begun. Without it they get the sums alone, as rounds are applied, and the members of a round that has begun run again.
  setBackups @19 (session :UInt64, backups :List(ShardReplica), leased :Bool, shares :Bool) -> ();
  # How the backups stand, as soon as that is not version `seen` any more; after 10 seconds at the latest.
  awaitBackups @20 (session :UInt64, seen :UInt64) -> (version :UInt64, backups :List(BackupState));

  # ---- for a coordinator that goes on with a run ----
  # The closures of the session that have pushed here, each from its first push on, besides those below the watermark, which have ended.
  applied @21 () -> (closures :AppliedSet);
}

# ---- worker ----

# A copy of a shard's rows, and the ps that serves it.
struct ShardReplica {
  ps @0 :UInt32;
  address @1 :Text;
  endpoint @2 :UInt32;
  process @3 :UInt64;          # the incarnation of the ps; 0: it is away
}
struct ShardLayout {
  primary @0 :ShardReplica;    # answers pulls and pushes
  backups @1 :List(ShardReplica);
  epoch @2 :UInt64;            # of the primary: it goes up when another process answers for the rows
  home @3 :UInt32;             # the ps that the shard is numbered under
}

struct VariableLayout {
  spec @0 :Core.VariableSpec;  # without the bytes of a given initial value
  rule @1 :Core.UpdateRule;
  parts @2 :List(PlacedPart);
}
struct PlacedPart {
  shard @0 :UInt32;
  begin @1 :Int64;
  end @2 :Int64;
}

struct Layout {
  version @0 :UInt64;
  seed @1 :UInt64;
  retired @2 :AnyPointer;
  variables @3 :List(VariableLayout);   # by VariableId
  shards @4 :List(ShardLayout);         # by their numbers
}

# Which elements a closure takes of one iterator argument: `count` from `ordinal` of `pipeline`. A lane whose own iterator
# stands elsewhere opens one at `state`, which stands at `stateOrdinal` <= ordinal, and skips.
struct Take {
  pipeline @0 :UInt64;
  ordinal @1 :UInt64;
  count @2 :UInt32;
  stateOrdinal @3 :UInt64;
  state @4 :Data;
}

struct Closure {
  sequence @0 :UInt64;
  function @1 :UInt32;                  # as registered
  arguments @2 :List(Core.TensorData);
  takes @3 :List(Take);                 # one an iterator argument
  retired @4 :UInt64;
  globalStep @5 :Int64;
  sentLayout @6 :UInt64;                # the version of the layout by which it was sent
  round @7 :UInt64;                     # its pushes are shares of this round; 0: applied when they come
  member @8 :Int32;                     # its number in the round: the replica whose random values it draws
  group @9 :UInt64;                     # of lanes (joinGroup), that all-reduce in it; only the shares of what is mirrored are kept. 0: in none
  base @10 :UInt64;                     # the round after which copies of what is mirrored are as the ps have it; 0: no copy is
  ahead @11 :Bool;                      # the ps have not applied that round yet: a lane that has no copy of it answers Aborted
}

struct IteratorState {
  ordinal @0 :UInt64;                   # elements handed out so far
  state @1 :Data;
  skipped @2 :UInt64;                   # bad rows passed over so far (skip and count)
}

struct ClosureResult {
  sequence @0 :UInt64;                  # of the closure
  outputs @1 :List(Core.TensorData);
  states @2 :List(IteratorState);       # beside Closure.takes: after the elements taken
  staleness @3 :UInt64;
  updated @4 :Bool;                     # it pushed
  copies @6 :UInt64;                    # with checkCopies: a hash of this lane's copies of what its group updated, parameters and slots; 0: none
  error @5 :Text;                       # it failed, alone: the text of a failed call (docs/wire-protocol.md); the rest is then void
}

struct GroupMember {
  task @0 :UInt32;                      # the worker's index
  address @1 :Text;
}

interface Lane {
  # `pipelineDepth` closures overlap; 1 is strict read-compute-write order. `incarnation`: the one that this lane's pushes carry
  # from now on, new at every connection, so that fencing a lost lane does not fence the one that comes back.
  configure @0 (session :UInt64, lane :UInt32, pipelineDepth :UInt32, encoding :Encoding, incarnation :UInt64,
                arithmetic :Arithmetic, checkCopies :Bool, deterministic :Bool) -> ();
  setLayout @1 (layout :Layout) -> ();
  register @2 (function :UInt32, graph :Data) -> ();   # refused if it does not verify
  openPipeline @3 (pipeline :UInt64, description :Data) -> ();
  retired @4 () -> ();
  # Takes `closures`, which may be none, and answers as soon as there are results: of closures that any call on this connection
  # brought, each once, in the order in which they ended. So none waits for a slower one. Results are sent to the call that waits
  # longest; who expects some keeps a call open. A call that fails has brought nothing.
  run @5 (closures :List(Closure)) -> (results :List(ClosureResult));
  # The cut: answers when no push of this lane is in flight, and holds new ones until release (or the connection's end).
  # `ended`: closures of this connection that have ended so far. Whether one of them failed half done is known only when the
  # results of all of them have come.
  holdPushes @6 () -> (ended :UInt64);
  releasePushes @7 () -> ();
  # This lane's closures all-reduce with the lanes 0 of these workers, listed by rank, of which this one has number `rank`. Answered
  # when the group has formed; it leaves the one that it was in. Members find each other by `group`, which is never given twice: it is
  # the session in the hello of a worker that dials a lane, where `Member` of collective/peer.capnp is served to it. No members: leave.
  joinGroup @8 (group :UInt64, rank :UInt32, members :List(GroupMember)) -> ();
}

# ---- coordinator ----

interface CoordinatorControl {
  status @0 () -> (json :Text);
  save @1 () -> (checkpoint :Text);
  stop @2 () -> ();
}
