#include "service/dispatcher/round_book.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn::service {
namespace {

std::string begun_anew(std::uint32_t index) {
  return str("consumer ", index,
             ": its group has begun anew without it: one of the group was started again, and all "
             "of them have to be, since they read the same rounds; start this one again, too");
}

}  // namespace

// ---- consumers ----

void RoundBook::begin_anew(std::uint64_t fresh) {
  group_ = fresh;
  base_ = end();
  order_.clear();
  last_.clear();
  for (Seat& seat : seats_) seat = {};
}

// The consumers of a group began together: if a consumer begins on a place that is taken, the group
// of that place's last consumer ends.
RoundBook::Seat& RoundBook::seat_of(const RoundReport& report, std::uint64_t fresh) {
  if (report.index >= seats_.size())
    throw InvalidArgumentError(str("consumer_index is ", report.index, ", and the group has ",
                                   seats_.size(), " consumers, counted from 0"));
  Seat& seat = seats_[report.index];
  if (report.group == 0) {
    if (seat.consumer == report.consumer) return seat;  // its call is repeated
    if (group_ == 0 || seat.consumer != 0) begin_anew(fresh);
    seat.consumer = report.consumer;
    seat.known = end();
    return seat;
  }
  if (group_ == 0) {
    group_ = report.group;
    base_ = report.base;
  }
  if (seat.consumer == 0 && group_ == report.group) seat.consumer = report.consumer;
  if (group_ != report.group || seat.consumer != report.consumer || report.base > end())
    throw FailedPreconditionError(begun_anew(report.index));
  return seat;
}

std::uint64_t RoundBook::report(const RoundReport& report, TimePoint now, std::uint64_t fresh) {
  Seat& seat = seat_of(report, fresh);
  seat.heard = now;
  const std::uint64_t known = report.group == 0 ? seat.known : report.base + report.known.size();
  // One that was repeated may come behind a later one, and is out of date.
  if (report.sequence <= seat.sequence) return known;
  seat.sequence = report.sequence;
  for (std::uint64_t i = 0; i < report.known.size(); ++i)
    if (report.base + i == end()) append(report.known[i]);
  seat.known = known;
  seat.here = report.here;
  seat.taken = report.taken;
  choose();
  trim();
  return known;
}

// ---- rounds ----

bool RoundBook::is_new(const Round& round) const {
  const auto last = last_.find(round.worker);
  return last == last_.end() || round.number > last->second;
}

void RoundBook::append(const Round& round) {
  order_.push_back(round);
  turn_ = round.worker;
  auto& last = last_.try_emplace(round.worker, round.number).first->second;
  last = std::max(last, round.number);
}

// Each worker's rounds are delivered in the order of their numbers. So if a consumer lacks a round
// but has a later one, it will never get the missing one, which is therefore skipped.
void RoundBook::choose() {
  std::map<DataWorkerPlace, std::deque<std::uint64_t>> ready;
  for (const Round& round : seats_.front().here)
    if (is_new(round) && std::ranges::all_of(seats_, [&](const Seat& seat) {
          return seat.consumer != 0 && seat.here.contains(round);
        }))
      ready[round.worker].push_back(round.number);
  while (!ready.empty()) {
    auto next = ready.upper_bound(turn_);
    if (next == ready.end()) next = ready.begin();
    append({next->first, next->second.front()});
    next->second.pop_front();
    if (next->second.empty()) ready.erase(next);
  }
}

void RoundBook::trim() {
  std::uint64_t known = end();
  for (const Seat& seat : seats_) known = std::min(known, seat.consumer == 0 ? base_ : seat.known);
  for (; base_ < known; ++base_) order_.pop_front();
}

// Returns the consumers without a new round. If no consumer has one, the data workers have no room:
// returns those whose programs have taken less.
std::vector<std::uint32_t> RoundBook::behind() const {
  std::vector<std::uint32_t> without, slow;
  std::uint64_t most = 0;
  for (const Seat& seat : seats_) most = std::max(most, seat.taken);
  for (std::uint32_t i = 0; i < seats_.size(); ++i) {
    const auto& here = seats_[i].here;
    if (std::ranges::none_of(here, [&](const Round& round) { return is_new(round); }))
      without.push_back(i);
    if (seats_[i].taken < most) slow.push_back(i);
  }
  return without.size() < seats_.size() ? without : slow;
}

RoundOrder RoundBook::order(std::uint32_t index, std::uint64_t group, std::uint64_t from,
                            TimePoint silent_before) const {
  if (group != group_) throw FailedPreconditionError(begun_anew(index));
  RoundOrder order{.group = group_, .base = base_, .begin = std::max(from, base_)};
  for (std::uint64_t at = order.begin; at < end(); ++at) order.rounds.push_back(order_[at - base_]);
  for (std::uint32_t i = 0; i < seats_.size(); ++i)
    if (seats_[i].consumer == 0 || seats_[i].heard < silent_before) order.missing.push_back(i);
  order.behind = behind();
  return order;
}

// ---- options ----

void verify_group(std::uint32_t consumers, std::uint32_t index, const std::string& job_name) {
  if (consumers > kGroupMax)
    throw InvalidArgumentError(str("num_consumers is ", consumers, ", from 1 to ", kGroupMax,
                                   " consumers can read in rounds"));
  if (consumers == 0 && index != 0)
    throw InvalidArgumentError(str("consumer_index is ", index,
                                   " of a consumer that reads for itself: give num_consumers, too, "
                                   "to read in rounds with others"));
  if (consumers == 0) return;
  if (index >= consumers)
    throw InvalidArgumentError(str("consumer_index is ", index, ", and num_consumers is ",
                                   consumers, ": places are counted from 0"));
  if (job_name.empty())
    throw InvalidArgumentError(
        str("num_consumers is ", consumers,
            ", and the job has no name: the consumers of a group find each other by job_name"));
}

std::string consumers_text(const std::vector<std::uint32_t>& some, std::uint32_t consumers) {
  std::string text = some.size() == 1 ? "consumer " : "consumers ";
  for (std::size_t i = 0; i < some.size(); ++i)
    text += str(i == 0 ? "" : i + 1 == some.size() ? " and " : ", ", some[i]);
  return str(text, " of ", consumers);
}

}  // namespace cairn::service
