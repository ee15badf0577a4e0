// History: what Model::fit() returns, the logs of each epoch.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cairn {

struct History {
  std::vector<std::int64_t> epoch;  // the numbers of the epochs, from 0
  // By name ("loss", "val_auc"), a value per epoch; NaN for an epoch that has none, as where the
  // validation data is not judged after each.
  std::map<std::string, std::vector<double>> history;

  void add(std::int64_t number, const std::map<std::string, double>& logs);
  // Another value for the newest epoch; a name that it did not have is added.
  void set_last(const std::string& name, double value);
  // The values of one name.
  //   Errors  InvalidArgument: there is none; names the nearest.
  const std::vector<double>& operator[](const std::string& name) const;
};

}  // namespace cairn
