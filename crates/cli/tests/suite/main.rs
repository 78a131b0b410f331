//! The command as people run it.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod ann;
mod book;
mod command;
mod containers;
mod damage;
mod deleted;
mod descriptions;
mod diff;
mod disks;
mod edit;
mod endings;
mod examples;
mod extract;
mod foreign;
mod fsck;
mod get;
mod guards;
mod helps;
mod interruption;
mod json;
mod lab;
mod looking;
mod memory;
mod network;
mod no_proc;
mod owners;
mod pages;
mod partitions;
mod qcow2;
mod recipes;
mod rootless;
mod rules;
mod run;
mod salvage;
mod serve;
mod shell;
mod shrink;
mod sources;
mod stacks;
mod targets;
mod terminal;
mod timeline;
mod trees;
mod volume;
