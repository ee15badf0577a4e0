// Requests to a shard, as plain structs whose spans refer to the message they came in.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/incarnation.h"
#include "core/graph/update_rule.h"
#include "core/rows/gather.h"
#include "core/rows/layout.h"
#include "core/rows/row_encoding.h"
#include "core/rows/shard_version.h"
#include "core/rows/variable_store.h"

namespace cairn::ps {

struct ReadHeader {
  VariableId variable = 0;
  std::uint32_t part = 0;
  std::uint32_t rows = 0;  // how many of the ids belong to it; 0 with whole
  bool whole = false;
  // with whole: Shard::written() of the copy that the caller has; 0: none
  std::uint64_t written = 0;
};

struct PullRequest {
  StepContext step;
  std::span<const ReadHeader> headers;
  std::span<const std::int64_t> ids;  // local row numbers, header after header
  RowEncoding encoding = RowEncoding::kRaw;
  NextReader next_reader = NextReader::kThisCore;
  // the lineage of which the caller has copies; of those that are still the same no values are
  // wanted
  Lineage copies_of;
};

struct UpdateHeader {
  VariableId variable = 0;
  std::uint32_t part = 0;
  std::uint32_t rows = 0;
  bool whole = false;
  UpdateRule rule;
  float learning_rate = 0;
};

// Row after row, header after header: one after the other, or each header's in a place of its own.
struct PushValues {
  PushValues() = default;
  PushValues(std::span<const std::byte> one) : together(one) {}
  PushValues(std::span<const std::span<const std::byte>> each) : apart(each) {}

  std::size_t bytes() const {
    std::size_t all = together.size();
    for (const auto& one : apart) all += one.size();
    return all;
  }

  std::span<const std::byte> together;
  std::span<const std::span<const std::byte>> apart;  // empty, or one for each header
};

// In pieces: headers, ids and values of the pieces, each laid end to end, are the push. A header
// that repeats the one before it (variable, part, rule and rate) with ids that go on ascending
// continues that update, so that an update may be cut.
//
// In slices: rows of a large part, by a rule that takes each row for itself, are applied when they
// are there, each slice once. Slice 0 is what else there is of the push, in pieces or not.
struct PushRequest {
  StepContext step;
  ShardVersion pulled;
  std::span<const UpdateHeader> headers;
  std::span<const std::int64_t> ids;  // local row numbers, ascending and distinct within a header
  PushValues values;
  RowEncoding encoding = RowEncoding::kRaw;
  std::uint32_t piece = 0;
  std::uint32_t pieces = 1;
  std::uint32_t slice = 0;
  // Holding it keeps the values where they are. Null: they go when the call ends.
  std::shared_ptr<const void> owner;
};

struct PushResult {
  ShardVersion version;
  std::uint64_t staleness = 0;  // updates by other closures since the pull; 0 without a pull
  bool duplicate = false;       // it had been applied before: nothing was done
  // Not 0: the push waits for rows, under this number, and nothing of it was done yet.
  std::uint64_t waits = 0;
};

// A closure whose share is part of a round's sum, and the layout by which its last run was sent.
struct RoundMember {
  std::uint64_t closure = 0;
  std::uint64_t sent_layout = 0;
};

struct RoundRequest {
  std::uint64_t session = 0;
  std::uint64_t round = 0;
  std::span<const RoundMember> members;  // in the order in which their shares are summed
};

// Local rows [begin, begin + rows) of one part of a dense variable, with their slots.
struct StateRequest {
  std::uint64_t session = 0;
  Epoch epoch;
  VariableId variable = 0;
  std::uint32_t part = 0;
  std::int64_t begin = 0;
  std::uint32_t rows = 0;
};

// A part of a variable, as requests name it.
struct TableId {
  VariableId variable = 0;
  std::uint32_t part = 0;
  friend auto operator<=>(const TableId&, const TableId&) = default;
};

struct PartConfig {
  std::uint32_t index = 0;
  RowRange rows;
};

struct TableConfig {
  VariableId variable = 0;
  std::shared_ptr<const VariableSpec> spec;
  UpdateRule rule;
  std::vector<PartConfig> parts;
};

struct Configuration {
  std::uint64_t session = 0;
  std::uint64_t layout_version = 0;
  std::uint64_t seed = 0;
  std::vector<TableConfig> tables;
  Epoch epoch;  // in which this shard answers for its rows
};

}  // namespace cairn::ps
