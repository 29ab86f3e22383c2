#pragma once
// The dashboard, assembled by CMake from dashboard.html, dashboard.css and the dashboard*.js files: one text
// that loads no other resource.

#include <string>

namespace carousel::viewer::web {

[[nodiscard]] const std::string& dashboard_html();

}  // namespace carousel::viewer::web
