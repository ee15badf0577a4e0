#include "service/consumer/consumers.h"

#include <map>
#include <mutex>

#include "core/base/error.h"
#include "data/stage/dataset_wire.h"
#include "service/consumer/data_service_reader.h"
#include "service/dispatcher/dispatcher.h"

namespace cairn::service {
namespace {

DataServiceOptions reader_options(const ServiceSource& source, const ConsumersOptions& own) {
  DataServiceOptions options;
  options.dispatcher = rpc::Address::parse(source.dispatcher);
  options.job_name = source.job_name;
  options.compression = compression_of(source.compression);
  options.mode = processing_mode(source.mode);
  options.cluster = source.cluster.empty() ? own.cluster : source.cluster;
  options.token = own.token;
  options.role = own.role;
  options.task = own.task;
  options.buffer_elements = static_cast<std::size_t>(source.buffer_elements);
  options.patience = own.patience;
  options.next_deadline = own.next_deadline;
  options.idle = own.idle;
  options.num_consumers = source.num_consumers;
  options.consumer_index = source.consumer_index;
  return options;
}

// One job's consumer in this process.
class Consumer final : public ElementSource {
 public:
  Consumer(Dataset dataset, DataServiceOptions options, rpc::Transport transport)
      : dataset_(std::move(dataset)), options_(std::move(options)), transport_(transport) {
    // A reader that is made after an error reads on in the same job.
    options_.own_job = random_number();
  }

  // One call at a time: a second one could not be answered sooner.
  std::optional<Element> next() override {
    std::lock_guard turn(turn_);
    const std::shared_ptr<DataServiceReader> reader = opened();
    try {
      return reader->next();
    } catch (const Error&) {
      std::lock_guard hold(mutex_);
      reader_.reset();
      throw;
    }
  }

  void stop() {
    std::lock_guard hold(mutex_);
    stopped_ = true;
    if (reader_) reader_->cancel();
  }

 private:
  std::shared_ptr<DataServiceReader> opened() {
    std::lock_guard hold(mutex_);
    if (stopped_) throw CancelledError("this process reads no data services any more");
    if (!reader_) reader_ = std::make_shared<DataServiceReader>(dataset_, options_, transport_);
    return reader_;
  }

  const Dataset dataset_;
  DataServiceOptions options_;
  const rpc::Transport transport_;
  std::mutex turn_;   // whose turn it is to wait for an element
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<DataServiceReader> reader_;
  bool stopped_ = false;
};

}  // namespace

// Equal descriptions, options included, have one consumer.
struct Consumers::Book {
  explicit Book(ConsumersOptions given) : options(std::move(given)) {}

  std::shared_ptr<ElementSource> open(const Dataset& dataset, const ServiceSource& source) {
    const std::uint64_t key = fingerprint(Dataset::from_service(dataset, source));
    std::lock_guard hold(mutex);
    if (stopped) throw CancelledError("this process reads no data services any more");
    std::erase_if(consumers, [](const auto& entry) { return entry.second.expired(); });
    if (auto known = consumers[key].lock()) return known;
    auto made =
        std::make_shared<Consumer>(dataset, reader_options(source, options), options.transport);
    consumers[key] = made;
    return made;
  }

  void stop() {
    std::lock_guard hold(mutex);
    stopped = true;
    for (const auto& [key, weak] : consumers)
      if (auto consumer = weak.lock()) consumer->stop();
  }

  const ConsumersOptions options;
  std::mutex mutex;  // guards what follows
  std::map<std::uint64_t, std::weak_ptr<Consumer>> consumers;
  bool stopped = false;
};

Consumers::Consumers(ConsumersOptions options)
    : book_(std::make_shared<Book>(std::move(options))) {}
Consumers::~Consumers() { stop(); }
void Consumers::stop() { book_->stop(); }

OpenElements Consumers::opener() const {
  return [book = book_](const Dataset& dataset, const ServiceSource& source) {
    return book->open(dataset, source);
  };
}

}  // namespace cairn::service
