// A cluster of this machine's own: what cairn/local_cluster.py is built on.
#include "tools/launch/local_cluster.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "forks.h"
#include "interpreter.h"
#include "options.h"

namespace cairn::python {
namespace {

class Local {
 public:
  // `temporary`: a folder to remove when the processes have ended; empty: none.
  Local(int ps, int workers, const std::string& folder, const std::string& programs,
        std::string temporary)
      : temporary_(std::move(temporary)),
        cluster_(std::make_unique<tools::LocalCluster>(tools::LocalClusterOptions{
            .ps = ps, .workers = workers, .dir = folder, .programs = programs})) {
    count_living(1);
  }
  ~Local() {
    const bool own = in_own_process();
    end_here(cluster_);
    if (!own) return;
    remove_folder();
    count_living(-1);
  }
  Local(const Local&) = delete;
  Local& operator=(const Local&) = delete;
  void start() {
    require_own_process();
    released([&] { cluster_->start(); });
  }
  void stop() {
    if (!in_own_process()) return;
    released([&] { cluster_->stop(); });
    remove_folder();
  }
  tools::LocalCluster& get() { return *cluster_; }

 private:
  // Processes write into it as long as they run.
  void remove_folder() {
    std::error_code ignored;
    if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
  }

  const std::string temporary_;
  std::unique_ptr<tools::LocalCluster> cluster_;
};

}  // namespace

void bind_local_cluster(nb::module_& m) {
  nb::class_<Local>(m, "_LocalCluster")
      .def(nb::init<int, int, const std::string&, const std::string&, std::string>(), "ps"_a,
           "workers"_a, "folder"_a, "programs"_a, "temporary"_a)
      .def("start", &Local::start)
      .def("stop", &Local::stop)
      .def_prop_ro("folder", [](Local& local) { return local.get().dir(); })
      .def_prop_ro("tf_config", [](Local& local) { return local.get().tf_config("chief", 0); })
      .def_prop_ro("cluster_id", [](Local& local) { return local.get().cluster_id(); })
      .def_prop_ro("token", [](Local& local) { return local.get().token(); })
      .def_prop_ro("pids", [](Local& local) {
        std::map<std::string, int> pids;
        for (const auto& role : local.get().supervisor().roles())
          pids[str(role.role, ":", role.index)] = role.pid;
        return pids;
      });
}

}  // namespace cairn::python
