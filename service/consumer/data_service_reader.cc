#include "service/consumer/data_service_reader.h"

#include <atomic>
#include <future>

#include "rpc/loop/reactor_thread.h"
#include "rpc/loop/task_group.h"

namespace cairn::service {
namespace {

struct Given {
  std::optional<Element> element;
  DataServiceStatistics statistics;
};
using Answer = std::promise<Given>;

std::exception_ptr cancelled() {
  return std::make_exception_ptr(CancelledError("reading through the data service was cancelled"));
}

// A call that was cancelled meanwhile has been answered.
rpc::Task<void> answer_next(DataServiceIterator* iterator, std::shared_ptr<Answer>* waiting) {
  Given given;
  std::exception_ptr error;
  try {
    given.element = co_await iterator->next();
    given.statistics = iterator->statistics();
  } catch (const Error&) {
    error = std::current_exception();
  }
  const auto answer = std::exchange(*waiting, nullptr);
  if (!answer) co_return;
  if (error)
    answer->set_exception(error);
  else
    answer->set_value(std::move(given));
}

rpc::Task<void> settle(DataServiceIterator* iterator, std::shared_ptr<std::promise<void>> done) {
  co_await iterator->settle();
  done->set_value();
}

}  // namespace

// All but the thread and the network lives on the loop's thread, and goes there. Made before and
// dropped after any call of next().
struct DataServiceReader::Loop {
  struct OnThread {
    std::unique_ptr<DataServiceIterator> iterator;
    std::shared_ptr<Answer> waiting;      // next()'s; null: it does not wait
    std::atomic<bool> cancelled = false;  // read by next() too
    rpc::TaskGroup tasks{[](const std::string&, const ErrorParts&) {}};
  };
  explicit Loop(rpc::Transport transport)
      : network(rpc::make_socket_network(transport)), thread("data service") {}
  ~Loop() {
    settle_all();
    thread.run([this] { on_thread.reset(); });
    thread.stop();
  }

  // Elements that were handed out must not come again because the reader goes early. A reader that
  // was cancelled does not wait for this.
  void settle_all() {
    auto done = std::make_shared<std::promise<void>>();
    thread.run([&] {
      if (on_thread == nullptr || on_thread->iterator == nullptr || on_thread->cancelled)
        return done->set_value();
      on_thread->tasks.spawn("settling", settle(on_thread->iterator.get(), done));
    });
    done->get_future().wait();
  }

  std::unique_ptr<rpc::Network> network;
  rpc::ReactorThread thread;
  std::unique_ptr<OnThread> on_thread;
};

DataServiceReader::DataServiceReader(const Dataset& dataset, DataServiceOptions options,
                                     rpc::Transport transport)
    : spec_(dataset.element_spec()), loop_(std::make_unique<Loop>(transport)) {
  loop_->thread.run([&] {
    loop_->on_thread = std::make_unique<Loop::OnThread>();
    loop_->on_thread->iterator = std::make_unique<DataServiceIterator>(
        loop_->thread.reactor(), *loop_->network, dataset, std::move(options));
  });
}

DataServiceReader::~DataServiceReader() = default;

// Going through the loop's thread takes two thread switches, which cost as much as a small element.
// Only elements that have not arrived yet are worth it.
std::optional<Element> DataServiceReader::next() {
  if (!loop_->on_thread->cancelled) {
    if (auto element = loop_->on_thread->iterator->take()) {
      ++statistics_.handed;
      return element;
    }
  }
  const auto answer = std::make_shared<Answer>();
  auto came = answer->get_future();
  loop_->thread.run([&] {
    auto& here = *loop_->on_thread;
    if (here.cancelled) return answer->set_exception(cancelled());
    here.waiting = answer;
    here.tasks.spawn("waiting for an element", answer_next(here.iterator.get(), &here.waiting));
  });
  Given given = came.get();
  statistics_ = given.statistics;
  return std::move(given.element);
}

void DataServiceReader::cancel() {
  loop_->thread.run([&] {
    auto& here = *loop_->on_thread;
    here.cancelled = true;
    here.tasks.cancel_all();
    if (const auto answer = std::exchange(here.waiting, nullptr))
      answer->set_exception(cancelled());
  });
}

}  // namespace cairn::service
