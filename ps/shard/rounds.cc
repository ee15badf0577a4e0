#include "ps/shard/rounds.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn::ps {
namespace {

void append(std::vector<std::byte>& to, const PushValues& values) {
  to.insert(to.end(), values.together.begin(), values.together.end());
  for (const auto& one : values.apart) to.insert(to.end(), one.begin(), one.end());
}

void add(float* to, const float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += values[i];
}

}  // namespace

const Share* StagedRounds::keep(const PushRequest& push, std::span<const PushPiece> pieces) {
  Share share;
  share.encoding = push.encoding;
  std::size_t value_bytes = 0, bytes = 0;
  for (const PushPiece& piece : pieces) {
    value_bytes += piece.values.bytes();
    bytes += bytes_of(piece);
  }
  // Known before anything is copied. What the share replaces still counts: it goes afterwards.
  if (bytes_ + bytes > bytes_max_)
    throw ResourceExhaustedError(str("round ", push.step.round, ", closure ", push.step.closure,
                                     ": with its share this shard would keep ", bytes_ + bytes,
                                     " bytes that wait, above the bound of ", bytes_max_,
                                     "; use more ps, or smaller updates"));
  share.values.reserve(value_bytes);
  for (const PushPiece& piece : pieces) {
    share.headers.insert(share.headers.end(), piece.headers.begin(), piece.headers.end());
    share.ids.insert(share.ids.end(), piece.ids.begin(), piece.ids.end());
    append(share.values, piece.values);
  }
  const Key key{push.step.round, push.step.closure};
  const auto at = members_.try_emplace(key).first;
  Member& member = at->second;
  // A late push of a run that another one has taken the place of.
  if (push.step.sent_layout < member.sent_layout) return nullptr;
  if (push.step.sent_layout > member.sent_layout) {
    for (const auto& [slice, old] : member.slices) bytes_ -= bytes_of(old.piece());
    member.slices.clear();
    member.sent_layout = push.step.sent_layout;
  }
  const auto [place, fresh] = member.slices.try_emplace(push.slice);
  if (!fresh) bytes_ -= bytes_of(place->second.piece());
  place->second = std::move(share);
  bytes_ += bytes_of(place->second.piece());
  return &place->second;
}

std::vector<const Share*> StagedRounds::of(std::uint64_t round, std::uint64_t closure) const {
  std::vector<const Share*> all;
  const auto found = members_.find({round, closure});
  if (found == members_.end()) return all;
  for (const auto& [slice, share] : found->second.slices) all.push_back(&share);
  return all;
}

StagedRounds::Members::iterator StagedRounds::drop(Members::iterator at) {
  for (const auto& [slice, share] : at->second.slices) bytes_ -= bytes_of(share.piece());
  return members_.erase(at);
}

void StagedRounds::end(std::uint64_t round) {
  over_ = std::max(over_, round);
  while (!members_.empty() && members_.begin()->first.round <= over_) drop(members_.begin());
  lost_.erase(lost_.begin(), lost_.upper_bound(over_));
}

// As many rounds at most are remembered as there were shares.
void StagedRounds::let_go(std::span<const VariableId> of) {
  const auto goes = [of](const auto& slice) {
    return of.empty() || std::ranges::any_of(slice.second.headers, [of](const auto& header) {
             return std::ranges::find(of, header.variable) != of.end();
           });
  };
  for (auto at = members_.begin(); at != members_.end();) {
    if (std::ranges::none_of(at->second.slices, goes)) {
      ++at;
      continue;
    }
    lost_.insert(at->first.round);
    at = drop(at);
  }
}

void StagedRounds::clear() {
  while (!members_.empty()) drop(members_.begin());
  lost_.clear();
  over_ = 0;
}

RoundBooks StagedRounds::books() const { return {over_, {lost_.begin(), lost_.end()}}; }

void StagedRounds::begin(const RoundBooks& books) {
  clear();
  over_ = books.over;
  lost_ = {books.lost.begin(), books.lost.end()};
}

std::vector<StagedRounds::Kept> StagedRounds::all() const {
  std::vector<Kept> all;
  for (const auto& [key, member] : members_)
    for (const auto& [slice, share] : member.slices)
      all.push_back({key.round, key.closure, member.sent_layout, slice, &share});
  return all;
}

void RowSum::add_all(const float* values) {
  if (!whole_ && ids_.empty()) {
    whole_ = true;
    values_.assign(values, values + rows_ * dim_);
    return;
  }
  widen();
  add(values_.data(), values, rows_ * dim_);
}

// Two ascending lists become one. Of a row that both have, what was there comes first.
void RowSum::add_rows(std::span<const std::int64_t> ids, const float* values) {
  if (whole_) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      add(values_.data() + static_cast<std::size_t>(ids[i]) * dim_, values + i * dim_, dim_);
    return;
  }
  std::vector<std::int64_t> merged;
  std::vector<float> sums;
  merged.reserve(ids_.size() + ids.size());
  sums.reserve(values_.size() + ids.size() * dim_);
  std::size_t here = 0, there = 0;
  while (here < ids_.size() || there < ids.size()) {
    const bool mine = there == ids.size() || (here < ids_.size() && ids_[here] <= ids[there]);
    const bool both = mine && there < ids.size() && ids_[here] == ids[there];
    merged.push_back(mine ? ids_[here] : ids[there]);
    const float* from = mine ? values_.data() + here * dim_ : values + there * dim_;
    sums.insert(sums.end(), from, from + dim_);
    if (both) add(sums.data() + sums.size() - dim_, values + there * dim_, dim_);
    here += mine ? 1 : 0;
    there += !mine || both ? 1 : 0;
  }
  ids_ = std::move(merged);
  values_ = std::move(sums);
}

void RowSum::widen() {
  if (whole_) return;
  std::vector<float> all(rows_ * dim_);
  for (std::size_t i = 0; i < ids_.size(); ++i)
    std::copy_n(values_.data() + i * dim_, dim_,
                all.data() + static_cast<std::size_t>(ids_[i]) * dim_);
  whole_ = true;
  ids_.clear();
  values_ = std::move(all);
}

}  // namespace cairn::ps
