# A dataset's description: the stages from the source to the last, each standing on the one before it.
# Fields are only ever added; numbers of enumerations (dtypes, feature kinds) are those of the C++ headers.
@0xb7c1e0a94d2f6e83;
using Cxx = import "/capnp/c++.capnp";
using Core = import "/core/graph/graph.capnp";
$Cxx.namespace("cairn::pipeline");

struct Description {
  stages @0 :List(Stage);
}

struct Stage {
  union {
    csv @0 :Csv;
    records @1 :Records;
    range @2 :Int64;
    tensors @3 :Tensors;
    features @4 :List(Feature);
    mapGraph @5 :Data;         # core/graph/graph.capnp, verified on its own
    shuffle @6 :Shuffle;
    batch @7 :Batch;
    repeat @8 :Int64;
    take @9 :Int64;
    skip @10 :Int64;
    shard @11 :Shard;
    prefetch @12 :Int64;
    interleave @13 :Interleave;
    cache @14 :Cache;
    deal @15 :Deal;
    rebatch @16 :Rebatch;
    textLines @17 :TextLines;
    libsvm @18 :Libsvm;
    tfRecords @19 :TfRecords;
    idx @20 :Idx;
    # The first of several datasets are the stages before; these are the others.
    concatenate @21 :Description;
    zip @22 :List(Description);
    sample @23 :Sample;
    filterGraph @24 :Data;
    takeWhileGraph @25 :Data;
    unbatch @26 :Void;
    paddedBatch @27 :Batch;
    window @28 :Window;
    generator @29 :Text;       # of this program alone: in fingerprints, and never sent
    hashSplit @30 :HashSplit;
    service @31 :Service;
    files @33 :Files;
  }
  mapParallelCalls @32 :Int16 = 1;  # of mapGraph; -1: as many as there are processors
}

# Files of a format that has no member of its own in the union above.
struct Files {
  format @0 :Text;
  source @1 :AnyPointer;     # a struct of the format's choice
}

# Elements that a data service hands out; data/dataset/service_source.h.
struct Service {
  dispatcher @0 :Text;
  jobName @1 :Text;
  cluster @2 :Text;
  mode @3 :UInt8;
  compression @4 :UInt8;
  bufferElements @5 :Int64;
  dataset @6 :Description;
  numConsumers @7 :UInt16;   # 0: no coordinated reads
  consumerIndex @8 :UInt16;
}

struct Csv {
  paths @0 :List(Text);
  columns @1 :List(CsvColumn);
  labelColumn @2 :Text;
  positive @3 :List(Text);
  negative @4 :List(Text);
  delimiter @5 :UInt8;
  header @6 :Bool;
  trim @7 :Bool;
  comment @8 :Text;
  unknown @9 :Text;
  onError @10 :UInt8;
  quote @11 :UInt8 = 34;     # 0: none
  cellLinesMax @12 :UInt16 = 1;
  strict @13 :Bool;
  reserved @14 :UInt8;       # of older descriptions
  binaryLabel @15 :Bool;
  lastTakesRest @16 :Bool;
  where @17 :List(Text);
  classes @18 :List(Text);
  skipUnknown @19 :Bool;     # rows whose label is unknown
  emptyFiles @20 :UInt8;
}

struct CsvColumn {
  name @0 :Text;
  dtype @1 :UInt8;
  hasDefault @2 :Bool;
  defaultValue @3 :Text;
  skip @4 :Bool;
  separator @5 :UInt8;
  missingIndicator @6 :Bool;
  unknown @7 :List(Text);
  ids @8 :IdRange;
  optional @9 :Bool;
  dateFormat @10 :Text;      # null: cells are of the dtype
}

struct IdRange {
  rows @0 :List(Int64);      # empty: any number
  hasPadding @1 :Bool;
  padding @2 :Int64;
}

struct Records {
  paths @0 :List(Text);
  fields @1 :List(RecordField);
  label @2 :Text;
  binaryLabel @3 :Bool;
  labelClasses @4 :UInt16;   # 0: the label is not one of classes
  finite @5 :Bool = true;
  onError @6 :UInt8;
  emptyFiles @7 :UInt8;
}

struct RecordField {
  name @0 :Text;
  dtype @1 :UInt8;
  count @2 :Int64;
  ids @3 :IdRange;
}

struct Tensors {
  columns @0 :List(TensorColumn);
  label @1 :Text;
}

struct TensorColumn {
  name @0 :Text;
  value @1 :Core.TensorData;
}

struct Feature {
  kind @0 :UInt8;
  name @1 :Text;
  inputs @2 :List(Text);
  numerics @3 :List(Numeric);
  values @4 :List(Text);
  oov @5 :UInt8;
  buckets @6 :Int64;
  boundaries @7 :List(Float32);
  wordsMax @8 :Int64;
  charactersMin @9 :Int64;
  charactersMax @10 :Int64;
  keepCase @11 :Bool;
  hasPadding @12 :Bool;
  padding @13 :Int64;
  datePart @14 :UInt8;
}

struct Numeric {
  column @0 :Text;
  mean @1 :Float32;
  stddev @2 :Float32;
  log1p @3 :Bool;
  hasDaysUntil @4 :Bool;
  daysUntil @5 :Int64;
}

struct Shuffle {
  bufferSize @0 :Int64;
  seed @1 :UInt64;
  reshuffle @2 :Bool;
  pipeline @3 :UInt64;         # part of the seed; at most 2^63 - 1
}

struct Batch {
  n @0 :Int64;
  dropRemainder @1 :Bool;
}

struct Shard {
  num @0 :Int64;               # 0: a hint, to be replaced
  index @1 :Int64;
}

struct Interleave {
  cycleLength @0 :Int64;
  blockLength @1 :Int64;
}

struct Cache {
  bytesMax @0 :Int64;
  file @1 :Text;
}

struct Sample {
  others @0 :List(Description);
  weights @1 :List(Float64);
  seed @2 :UInt64;
  stopOnEmpty @3 :Bool;
}

struct Window {
  size @0 :Int64;
  shift @1 :Int64;
  stride @2 :Int64;
  dropRemainder @3 :Bool;
}

struct HashSplit {
  column @0 :Text;
  begin @1 :Float64;
  end @2 :Float64;
}

struct Rebatch {
  sizes @0 :List(Int64);
  dropRemainder @1 :Bool;
}

struct Deal {
  replicas @0 :Int64;
  cut @1 :Bool;                # each batch is cut among them; else they take batches in turn
}

struct TextLines {
  paths @0 :List(Text);
  column @1 :Text;
  skipBlank @2 :Bool;
  lineBytesMax @3 :Int64;
  onError @4 :UInt8;
  emptyFiles @5 :UInt8;
}

struct Libsvm {
  paths @0 :List(Text);
  ids @1 :Text;
  values @2 :Text;
  labelColumn @3 :Text;
  positive @4 :List(Text);
  negative @5 :List(Text);
  binaryLabel @6 :Bool;
  qid @7 :Text;
  zeroBased @8 :Bool;
  dimension @9 :Int64;
  onError @10 :UInt8;
  emptyFiles @11 :UInt8;
}

struct TfRecords {
  paths @0 :List(Text);
  features @1 :List(ExampleFeature);
  label @2 :Text;
  onError @3 :UInt8;
  recordBytesMax @4 :Int64;
  binaryLabel @5 :Bool;
  labelClasses @6 :UInt16;   # 0: the label is not one of classes
  finite @7 :Bool = true;
  emptyFiles @8 :UInt8;
}

struct ExampleFeature {
  name @0 :Text;
  dtype @1 :UInt8;
  shape @2 :List(Int64);
  ragged @3 :Bool;
  hasDefault @4 :Bool;
  defaultValue @5 :Text;
  ids @6 :IdRange;
}

struct Idx {
  columns @0 :List(IdxColumn);
  label @1 :Text;
}

struct IdxColumn {
  name @0 :Text;
  paths @1 :List(Text);
  dtype @2 :UInt8;
  shape @3 :List(Int64);
}
