#include "data/dataset/dataset.h"

#include <algorithm>

#include "data/dataset/dataset_iterator.h"
#include "data/dataset/stage_spec.h"
#include "data/dataset/state.h"
#include "data/feature/hash.h"
#include "data/stage/dataset_wire.h"
#include "tests/fuzz/refusal.h"

namespace cairn::fuzz {
namespace {

constexpr int kElementsMax = 50;
// how much work a description asks for is its author's affair
constexpr std::int64_t kNumberMax = 1000;
constexpr std::size_t kBufferBytesMax = 1 << 20;

// A description as it travels, under a checksum that fits.
std::vector<std::byte> sealed(Bytes body) {
  constexpr std::uint64_t kVersion = 1;
  std::uint64_t sum = body.size(), word = 0;
  for (std::size_t at = 0; at + 8 <= body.size(); at += 8) {
    std::memcpy(&word, body.data() + at, 8);
    sum = cross_hash(sum, word);
  }
  std::vector<std::byte> bytes(24 + body.size());
  std::memcpy(bytes.data(), "CAIRNDS", 8);
  std::memcpy(bytes.data() + 8, &kVersion, 8);
  std::memcpy(bytes.data() + 16, &sum, 8);
  std::copy(body.begin(), body.end(), bytes.begin() + 24);
  return bytes;
}

bool small(std::int64_t number) { return number <= kNumberMax; }
bool ours(const std::string& path) {
  constexpr std::string_view kFolder = "tests/fuzz/data/";
  return path.starts_with(kFolder) && path.find('/', kFolder.size()) == path.npos;
}

// No files but those that are there for this (below), and no endless work.
struct MayBeOpened {
  bool operator()(const RangeSpec& spec) const { return small(spec.n); }
  bool operator()(const RepeatSpec& spec) const { return small(spec.count); }
  bool operator()(const SkipSpec& spec) const { return small(spec.count); }
  bool operator()(const ShardSpec& spec) const { return small(spec.num); }
  bool operator()(const MapSpec& spec) const { return spec.graph.size() < 4096; }
  bool operator()(const InterleaveSpec& spec) const {
    return small(spec.cycle_length) && small(spec.block_length);
  }
  bool operator()(const CacheSpec& spec) const {
    return spec.file.empty() && spec.bytes_max <= static_cast<std::int64_t>(kBufferBytesMax);
  }
  template <typename Other>
  bool operator()(const Other&) const {
    return true;
  }
};

bool may_be_opened(const Dataset& dataset) {
  for (auto stage = dataset.last(); stage; stage = stage->input) {
    const std::vector<std::string> paths = paths_of(*stage);
    if (!std::all_of(paths.begin(), paths.end(), ours)) return false;
    if (!std::visit(MayBeOpened{}, stage->kind)) return false;
  }
  return true;
}

IteratorState state_of(const Dataset& dataset, std::uint64_t ordinal, Bytes stages) {
  StateWriter out;
  out.number(1);
  out.number(fingerprint(dataset));
  out.number(ordinal);
  out.blob(stages);
  return {out.take()};
}

void read_some(const Dataset& dataset, const IteratorState& state) {
  OpenOptions options;
  options.buffer_bytes_max = kBufferBytesMax;
  const auto iterator = open(dataset, state, options);
  for (int i = 0; i < kElementsMax && iterator->next(); ++i) continue;
  const IteratorState stands = iterator->state();
  CAIRN_CHECK(ordinal(stands) == iterator->ordinal(),
              "a state tells another ordinal than its iterator");
  open(dataset, stands, options)->next();
}

}  // namespace

// A byte for the ordinal, a byte for the length of the stages' state, that state, and the
// description.
void dataset(Bytes input) {
  const std::uint64_t ordinal = take_choice(input);
  const std::size_t size = std::min<std::size_t>(take_choice(input), input.size());
  const Bytes state = input.first(size);
  may_refuse([&] { parse_dataset(input); });
  may_refuse([&] {
    const Dataset dataset =
        parse_dataset(sealed(input.subspan(size, (input.size() - size) / 8 * 8)));
    CAIRN_CHECK(fingerprint(parse_dataset(serialize(dataset))) == fingerprint(dataset),
                "a dataset changes when it is written again");
    if (!may_be_opened(dataset)) return;
    may_refuse([&] { read_some(dataset, {}); });
    may_refuse([&] { read_some(dataset, state_of(dataset, ordinal, state)); });
  });
}

}  // namespace cairn::fuzz
