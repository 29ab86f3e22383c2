#include "stages/inference/views.hpp"

int main(int argc, char** argv) { return carousel::stage_main<carousel::stages::view_source>(argc, argv); }
