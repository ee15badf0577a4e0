// ElementBuffer: what a consumer has ahead. Elements come in from data workers on the loop; the
// program takes them, on the loop or on a thread of its own, without waiting for the loop.
//
// An element that was taken belongs to those to be acknowledged to its data worker from that moment
// on: nothing can come between the two, also not the end of a connection.
//   Thread  any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "core/tensor/element.h"
#include "service/dispatcher/dispatcher.h"

namespace cairn::service {

class ElementBuffer {
 public:
  // `on_demand` is called when a worker can send again or is owed an acknowledgement: on the thread
  // that took an element, with no lock held.
  explicit ElementBuffer(std::function<void()> on_demand) : on_demand_(std::move(on_demand)) {}

  // ---- the program ----
  std::optional<Element> take();  // the oldest; none: nothing is here
  std::uint64_t taken() const;    // in all

  // ---- the loop ----
  void put(const DataWorkerPlace& worker, std::uint64_t number, Element element);
  bool empty() const;
  std::size_t waiting(const DataWorkerPlace& worker) const;  // of its elements, not taken yet
  // Another call to a worker is due once at most this many of its elements are left here.
  void set_low(std::size_t waiting);
  // Numbers of elements that were taken and are not acknowledged, at most `most`.
  std::vector<std::uint64_t> unacknowledged(const DataWorkerPlace& worker, std::size_t most) const;
  void acknowledged(const DataWorkerPlace& worker, const std::vector<std::uint64_t>& numbers);
  // An element that came and, unless it waits here, is not handed out, nor wanted from anybody
  // again: it is acknowledged.
  void discard(const DataWorkerPlace& worker, std::uint64_t number);
  // Drops what waits of a worker that sends it again.
  void forget(const DataWorkerPlace& worker);
  // A worker that is gone, whose elements others give again: drops all that is known of it.
  void remove(const DataWorkerPlace& worker);
  // Drops all that waits, for other consumers to have. Not while something is to be acknowledged,
  // or nothing waits: false.
  bool give_back();
  void close();  // take() gives nothing any more

 private:
  struct Waiting {
    DataWorkerPlace worker;
    std::uint64_t number;
    Element element;
  };
  struct Worker {
    std::size_t waiting = 0;
    std::set<std::uint64_t> taken;
  };
  const std::function<void()> on_demand_;
  mutable std::mutex mutex_;  // guards what follows
  std::deque<Waiting> waiting_;
  std::map<DataWorkerPlace, Worker> workers_;
  std::uint64_t taken_ = 0;
  std::size_t low_ = 0;
  bool closed_ = false;
};

}  // namespace cairn::service
