#include "storage/row_log/row_reads.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace cairn::storage {

void RowReads::read(std::span<const Place> places, std::span<const std::uint64_t> expected,
                    const ReadShape& shape, RowsDone done) {
  CAIRN_CHECK(expected.empty() || expected.size() == places.size(), "a key for each place");
  auto batch = std::make_shared<Batch>();
  batch->expected.assign(expected.begin(), expected.end());
  batch->result.keys.resize(places.size());
  batch->result.rows.resize(places.size() * layout_.row_bytes);
  batch->done = std::move(done);
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    CAIRN_CHECK(segments_.is_readable(places[i]), "no row lies at place ", places[i]);
    const std::byte* record = writer_.find_record(places[i]);
    if (record == nullptr)
      batch->wanted.push_back({places[i], i});
    else
      take(*batch, {places[i], i}, record);
  }
  begin(batch, shape);
}

void RowReads::begin(const std::shared_ptr<Batch>& batch, const ReadShape& shape) {
  if (batch->wanted.empty()) {
    io_.post(owner_, [batch] { batch->done(std::move(batch->result)); });
    return;
  }
  std::sort(batch->wanted.begin(), batch->wanted.end(),
            [](const Wanted& a, const Wanted& b) { return a.place < b.place; });
  for (std::size_t first = 0; first < batch->wanted.size();) {
    const Span span = next_span(*batch, first, shape);
    const std::uint32_t segment = layout_.segment(batch->wanted[first].place);
    segments_.pin(segment);
    ++batch->left;
    io_.read(owner_, segments_[segment].descriptor, span.begin, span.end - span.begin,
             shape.urgency, [this, batch, span](int error, const std::byte* data) {
               span_ended(batch, span, error, data);
             });
    first = span.last;
  }
  io_.start();
}

// Whole sectors from the first record on, and as many further records as the shape lets in.
RowReads::Span RowReads::next_span(const Batch& batch, std::size_t first,
                                   const ReadShape& shape) const {
  const std::uint64_t unit = segments_.alignment();
  const auto sectors = [&](Place place) {
    const std::uint64_t offset = layout_.offset(place);
    return std::pair{offset / unit * unit, (offset + layout_.width + unit - 1) / unit * unit};
  };
  const Place place = batch.wanted[first].place;
  const auto [begin, end] = sectors(place);
  Span span = {first, first + 1, begin, end};
  for (; span.last < batch.wanted.size(); ++span.last) {
    const Place next = batch.wanted[span.last].place;
    if (layout_.segment(next) != layout_.segment(place)) break;
    const auto [next_begin, next_end] = sectors(next);
    if (next_begin > span.end + shape.gap_bytes_max) break;
    if (next_end > span.end && next_end - span.begin > shape.bytes_max) break;
    span.end = std::max(span.end, next_end);
  }
  return span;
}

void RowReads::span_ended(const std::shared_ptr<Batch>& batch, const Span& span, int error,
                          const std::byte* data) {
  if (error != 0) {
    fail(*batch, read_error(*batch, span, error));
  } else {
    for (std::size_t i = span.first; i < span.last; ++i) {
      const Wanted wanted = batch->wanted[i];
      take(*batch, wanted, data + (layout_.offset(wanted.place) - span.begin));
    }
  }
  segments_.unpin(layout_.segment(batch->wanted[span.first].place));
  if (--batch->left == 0) batch->done(std::move(batch->result));
}

void RowReads::take(Batch& batch, Wanted wanted, const std::byte* record) const {
  if (batch.result.error) return;
  const std::uint32_t segment = layout_.segment(wanted.place);
  const RecordView view = read_record(layout_, segments_[segment].file_number, record);
  const auto where = [&] {
    return str(segments_.path(segment), ", offset ", layout_.offset(wanted.place));
  };
  const bool expects = !batch.expected.empty();
  if (!view.sound) {
    const std::string key =
        expects ? str("key ", batch.expected[wanted.index]) : str("what says to be key ", view.key);
    fail(batch, std::make_exception_ptr(DataLossError(
                    str("the checksum of a cold row is wrong: ", where(), ", ", key,
                        ". The disk or its driver has damaged it: begin anew from the newest "
                        "checkpoint"))));
  } else if (expects && view.key != batch.expected[wanted.index]) {
    fail(batch, std::make_exception_ptr(DataLossError(
                    str("a cold row of another key lies where key ", batch.expected[wanted.index],
                        " belongs: ", where(), " has key ", view.key,
                        ". Begin anew from the newest checkpoint"))));
  } else {
    batch.result.keys[wanted.index] = view.key;
    std::memcpy(batch.result.rows.data() + wanted.index * layout_.row_bytes, view.row.data(),
                view.row.size());
  }
}

// The first error of a batch stays.
void RowReads::fail(Batch& batch, std::exception_ptr error) const {
  if (batch.result.error) return;
  batch.result = {.keys = {}, .rows = {}, .error = std::move(error)};
}

std::exception_ptr RowReads::read_error(Batch& batch, const Span& span, int error) const {
  const Wanted first = batch.wanted[span.first];
  const std::string key = batch.expected.empty()
                              ? std::string()
                              : str(", where key ", batch.expected[first.index], " lies");
  return std::make_exception_ptr(
      DataLossError(str("cannot read ", span.end - span.begin, " bytes at offset ", span.begin,
                        " of ", segments_.path(layout_.segment(first.place)), key, ": ",
                        strerror(error), ". Begin anew from the newest checkpoint")));
}

}  // namespace cairn::storage
