// Table's subscribers: what they are told when rows change, leave or begin anew.
#include <algorithm>

#include "ps/shard/table.h"

namespace cairn::ps {

TableChanges* Table::follower(std::uint64_t subscriber) {
  const auto at =
      std::ranges::find(followers_, subscriber, [](const auto& one) { return one.first; });
  return at == followers_.end() ? nullptr : at->second.get();
}

TableChanges& Table::follow(std::uint64_t subscriber) {
  if (TableChanges* const there = follower(subscriber)) return *there;
  return *followers_.emplace_back(subscriber, std::make_unique<TableChanges>()).second;
}

void Table::unfollow(std::uint64_t subscriber) {
  std::erase_if(followers_, [subscriber](const auto& one) { return one.first == subscriber; });
}

// A given initial value is not told to subscribers: each of its rows is to be sent.
void Table::mark_touched(TouchedRows& places) {
  if (!hashed()) {
    if (spec().initializer.kind == Initializer::Kind::kValue)
      return places.add(RowRange{0, rows()});
    TouchedRows& touched = snapshot_.touched_rows();
    touched.settle();
    return touched.for_each_range([&places](RowRange range) { places.add(range); });
  }
  if (used() == held()) return places.add(RowRange{0, held()});
  for (std::int64_t place = 0; place < held(); ++place)
    if (memory_.row_at(place) != IdIndex::kFree) places.add({&place, 1});
}

void Table::add_places(std::span<const std::int64_t> rows, std::vector<std::int64_t>& places) {
  const std::size_t first = places.size();
  const Places found = memory_.find(rows);
  places.insert(places.end(), found.at.begin(), found.at.end());
  for (const std::size_t i : found.absent) places[first + i] = -1;
}

void Table::add_rows_at(std::span<const std::int64_t> places, std::vector<std::int64_t>& rows,
                        std::vector<std::byte>& values) const {
  const std::size_t before = values.size();
  values.resize(before + places.size() * row_bytes());
  for (const std::int64_t place : places) rows.push_back(memory_.row_at(place));
  memory_.read(Places{places, places, {}, {}}, values.data() + before);
}

void Table::tell_changed(std::span<const std::int64_t> places) {
  for (const auto& [subscriber, changes] : followers_) changes->changed(places, held());
}

void Table::tell_all_changed() {
  for (const auto& [subscriber, changes] : followers_) changes->all_changed(held());
}

void Table::tell_left(std::span<const std::int64_t> places, std::span<const std::int64_t> rows,
                      TableChanges::To to) {
  for (const auto& [subscriber, changes] : followers_)
    for (std::size_t i = 0; i < rows.size(); ++i) changes->leaves(places[i], rows[i], to);
}

void Table::tell_begins() {
  for (const auto& [subscriber, changes] : followers_) changes->begin_anew();
}

}  // namespace cairn::ps
