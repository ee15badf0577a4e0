#include "serving/follow/shard_answers.h"

#include <cstring>

#include "core/base/error.h"
#include "core/graph/wire/wire.h"

namespace cairn::serving {
namespace {

constexpr unsigned kTablesMax = 1u << 20;

// Numbers in a blob that nothing has aligned.
std::int64_t number_at(capnp::Data::Reader data, std::size_t index) {
  std::int64_t number = 0;
  std::memcpy(&number, data.begin() + index * sizeof(number), sizeof(number));
  return number;
}

void add_rows(capnp::Data::Reader numbers, std::size_t first, std::size_t count,
              const ShardDescription::Part& part, std::vector<std::int64_t>& out) {
  if (numbers.size() % sizeof(std::int64_t) != 0 ||
      count > numbers.size() / sizeof(std::int64_t) - first)
    throw InvalidArgumentError(str("a ps lists fewer rows of '", part.variable->name,
                                   "' than it says: ", count, " from the ", first, "th on"));
  out.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t row = number_at(numbers, first + i);
    if (row < 0 || row >= part.rows.size())
      throw InvalidArgumentError(str("a ps answers with row ", row, " of a part of '",
                                     part.variable->name, "' that has ", part.rows.size()));
    out.push_back(part.rows.begin + row);
  }
}

}  // namespace

ShardDescription read_description(wire::Shard::DescribeResults::Reader in) {
  ShardDescription made{in.getDescription(), in.getSession(), in.getSeed(), {}};
  for (const auto table : wire::bounded(in.getTables(), kTablesMax, "tables")) {
    const auto spec = std::make_shared<const VariableSpec>(wire::read(table.getSpec()));
    verify_spec(*spec);
    for (const auto part : wire::bounded(table.getParts(), kTablesMax, "parts")) {
      const RowRange rows{part.getBegin(), part.getEnd()};
      if (rows.begin < 0 || rows.begin > rows.end || rows.end > spec->rows())
        throw InvalidArgumentError(str("a ps describes rows ", rows.begin, " to ", rows.end,
                                       " of '", spec->name, "', which has ", spec->rows()));
      made.parts[{table.getVariable(), part.getIndex()}] = {spec, rows};
    }
  }
  return made;
}

ShardChanges read_changes(wire::Shard::ChangesResults::Reader in,
                          const ShardDescription& description) {
  ShardChanges all;
  const capnp::Data::Reader rows = in.getRows(), gone = in.getGone(), values = in.getValues();
  std::size_t rows_read = 0, gone_read = 0, bytes_read = 0;
  for (const auto table : wire::bounded(in.getTables(), kTablesMax, "tables")) {
    const ShardDescription::Id id{table.getVariable(), table.getPart()};
    const auto at = description.parts.find(id);
    if (at == description.parts.end())
      throw InvalidArgumentError(str("a ps answers with part ", id.second, " of variable number ",
                                     id.first, ", which it has not described"));
    const ShardDescription::Part& part = at->second;
    RowChanges changes{.variable = part.variable, .part = part.rows};
    changes.begins = table.getBegins();
    changes.complete = table.getComplete();
    add_rows(rows, rows_read, table.getRows(), part, changes.rows);
    add_rows(gone, gone_read, table.getGone(), part, changes.gone);
    const std::size_t bytes = changes.rows.size() * part.row_bytes();
    if (bytes > values.size() - bytes_read)
      throw InvalidArgumentError(str("a ps answers with ", changes.rows.size(), " rows of '",
                                     part.variable->name, "', whose values did not come"));
    const auto* const from = reinterpret_cast<const std::byte*>(values.begin()) + bytes_read;
    changes.values.assign(from, from + bytes);
    rows_read += changes.rows.size();
    gone_read += changes.gone.size();
    bytes_read += bytes;
    if (changes.begins) all.begun.insert(id);
    if (changes.complete) all.completed.insert(id);
    all.changes.push_back(std::move(changes));
  }
  all.bytes = rows.size() + gone.size() + values.size();
  return all;
}

}  // namespace cairn::serving
