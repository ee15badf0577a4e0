#include "serving/follow/row_reader.h"

#include <future>
#include <random>
#include <utility>

#include "core/base/error.h"
#include "rpc/loop/reactor_thread.h"
#include "serving/follow/remote_rows.h"

namespace cairn::serving {

struct RowReader::Impl {
  explicit Impl(RowStreamOptions options) {
    std::random_device device;
    const std::uint64_t number = (std::uint64_t{device()} << 32 | device()) | 1;
    loop.run([&] {
      rows = std::make_unique<RemoteRows>(loop.reactor(), *network, std::move(options), number);
      tasks = std::make_unique<rpc::TaskGroup>();
    });
  }
  ~Impl() {
    loop.run([&] {
      tasks.reset();
      rows.reset();
    });
  }

  // Runs `begin()` on the loop and waits for its end.
  template <typename Begin>
  void wait(Begin begin) {
    std::promise<void> ended;
    std::future<void> end = ended.get_future();
    loop.run([&] { tasks->spawn("read rows", finish(begin(), &ended)); });
    end.get();
  }
  static rpc::Task<void> finish(rpc::Task<void> work, std::promise<void>* ended) {
    try {
      co_await std::move(work);
      ended->set_value();
    } catch (...) {
      ended->set_exception(std::current_exception());
    }
  }

  const std::unique_ptr<rpc::Network> network = rpc::make_socket_network();
  rpc::ReactorThread loop{"row-reader"};
  std::unique_ptr<RemoteRows> rows;
  std::unique_ptr<rpc::TaskGroup> tasks;
};

RowReader::RowReader(RowStreamOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
RowReader::~RowReader() = default;

RowsRead RowReader::read(std::span<const RowsWanted> wanted, Duration patience) {
  RowsRead read;
  impl_->wait([&] { return impl_->rows->read(wanted, patience, read); });
  return read;
}

namespace {

rpc::Task<void> find_variable(RemoteRows& rows, std::string name, Duration patience,
                              std::shared_ptr<const VariableSpec>& found) {
  co_await rows.known(patience);
  found = rows.variable(name);
}

}  // namespace

std::shared_ptr<const VariableSpec> RowReader::variable(const std::string& name,
                                                        Duration patience) {
  std::shared_ptr<const VariableSpec> found;
  impl_->wait([&] { return find_variable(*impl_->rows, name, patience, found); });
  return found;
}

std::uint64_t RowReader::seed() const {
  std::uint64_t seed = 0;
  impl_->loop.run([&] { seed = impl_->rows->seed(); });
  return seed;
}

}  // namespace cairn::serving
