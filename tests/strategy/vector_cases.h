// Runs every case of a file of recorded vectors. If a kind of case is unknown, the test that met it
// fails.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "tests/core/vectors.h"

namespace cairn::testing {

using CaseFunction = std::function<void(const Json& test)>;

using Kinds = std::map<std::string, CaseFunction>;

inline void run_cases_of(const Json& vectors, const std::string& topic, const Kinds& kinds) {
  EXPECT_FALSE(vectors.at("cases").empty());
  for (const Json& test : vectors.at("cases")) {
    SCOPED_TRACE(topic + ", case " + test.at("id").get<std::string>());
    const std::string kind = test.at("kind");
    auto known = kinds.find(kind);
    if (known == kinds.end()) {
      ADD_FAILURE() << "no test knows cases of kind \"" << kind << "\"";
      continue;
    }
    try {
      known->second(test);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "threw: " << error.what();
    }
  }
}

// The recorded cases, and those of tests/vectors/more: forms of a case that other recordings of the
// topic hold.
inline void run_cases(const std::string& topic, const Kinds& kinds) {
  run_cases_of(load_vectors(topic), topic, kinds);
}
inline void run_more_cases(const std::string& topic, const Kinds& kinds) {
  const std::string path = "tests/vectors/more/" + topic + ".json";
  run_cases_of(parse_json(system_disk().read(path), path), topic, kinds);
}

// The case itself is of a known kind, but what it asks for is not.
inline void fail_unknown(const Json& test, const std::string& what) {
  ADD_FAILURE() << "no test knows " << what << " of case \"" << test.at("id").get<std::string>()
                << "\": " << json_text(test.at("in"));
}

inline bool refused(const Json& out) { return out.is_object() && out.contains("error"); }

inline void expect_near(const Json& recorded, const std::vector<float>& got, double relative,
                        double absolute = 1e-7) {
  const Json& want = recorded.is_object() ? recorded.at("data") : recorded;
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(near(got[i], number(want.at(i)), relative, absolute))
        << "number " << i << ": " << got[i] << ", recorded " << want.at(i);
}

}  // namespace cairn::testing
