@0xd4b0a17c5e6f2983;
# Calls among the members of a group that spans processes. Each member serves this at its address,
# and dials every other member: its own calls go out on the connections that it dialled, whose hello
# has named it.

using Cxx = import "/capnp/c++.capnp";
using Core = import "/core/graph/graph.capnp";
$Cxx.namespace("cairn::wire");

# One message of one call.
struct Parcel {
  generation @0 :UInt64;       # of the group; another one's parcels are refused
  call @1 :UInt64;             # numbered from 0; calls of the same number meet
  part @2 :UInt32;             # of the call: the parts are exchanged independently of each other
  step @3 :UInt32;             # of the exchange
  signature @4 :UInt64;        # a hash of what all members must ask alike in this call
  asked @5 :Text;              # the same for people; with part 0 only
  value @6 :Core.TensorData;   # with the first piece of a tensor: its type, and its elements if they are strings
  data @7 :Data;               # a multiple of 8 bytes
}

interface Member {
  # Rank 0 asks it of the others when all are connected with all. It is answered when that is so here, too, among these incarnations.
  form @0 (generation :UInt64, agreed :UInt64, incarnations :List(UInt64)) -> ();
  # Answered when the values were used: the memory that they were sent from is free then.
  put @1 (parcel :Parcel) -> ();
  # The number of calls that the member has made.
  ping @2 () -> (calls :UInt64);
  # The group has ended, with this error; or the caller has left in order, its calls all complete.
  abort @3 (error :Text, left :Bool) -> ();
}
