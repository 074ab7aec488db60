//! The place of a call in the program: the addresses of its code, or the frames of an interpreter, as sites of a recording.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use sardonyx_crash_test::recording::sites::Ran;
use sardonyx_crash_test::recording::{Module, NOWHERE, SCRIPTS, ScriptFrame, Site};

use crate::recording::perf_map::PerfMap;
use crate::recording::process::{self, MappedCode};
use crate::recording::stack::Walked;
use crate::recording::{Process, Recorder};

impl Recorder {
    /// The site of the call at which a thread has stopped.
    pub(super) fn site(&mut self, thread: i32) -> u32 {
        let Some(known) = self.threads.get(&thread) else {
            return NOWHERE;
        };
        let process_id = known.process;
        let Some(registers) = known.registers.clone() else {
            return NOWHERE;
        };
        let Some(mut process) = self.processes.remove(&process_id) else {
            return NOWHERE;
        };
        let mut walked = self.stacks.walk(thread, &registers, &process.code);
        if walked.left || walked.calls.len() < 3 {
            // The process may have mapped a library since.
            self.look_up_code(process_id, &mut process);
            walked = self.stacks.walk(thread, &registers, &process.code);
        }
        let calls = self.with_scripts(thread, &process, walked);
        let program = process.command;
        let mut site = process.run_at;
        for pc in calls.into_iter().rev() {
            let parent = site.wrapping_add(1);
            site = match self.sites.get(&(parent, pc, program)) {
                Some(&known) => known,
                None => {
                    self.add_module(&process, pc);
                    let number = self.places.sites.len() as u32;
                    self.places.sites.push(Site {
                        parent,
                        pc,
                        locked: false,
                        program,
                    });
                    self.sites.insert((parent, pc, program), number);
                    number
                }
            };
        }
        self.processes.insert(process_id, process);
        site
    }

    /// Reads again what code a process has, and which interpreter.
    pub(super) fn look_up_code(&mut self, process_id: i32, process: &mut Process) {
        process.code = process::code(process_id);
        let read = |address, length| process::memory(process_id, address, length);
        if process.interpreter.is_none() {
            process.interpreter = self.interpreters.find(&process.code, &read);
        }
    }

    /// Calls with those of an interpreter in the place of its own, from its innermost one on.
    fn with_scripts(&mut self, thread: i32, process: &Process, walked: Walked) -> Vec<u64> {
        let mut calls = walked.calls;
        let Some(interpreter) = &process.interpreter else {
            return calls;
        };
        let read = |address, length| process::memory(thread, address, length);
        let frames = interpreter.frames(thread, &walked.made, &read);
        if frames.is_empty() {
            return calls;
        }
        let its = |pc: &u64| code_at(&process.code, *pc).is_some_and(|c| interpreter.has(&c.path));
        calls.truncate(calls.iter().position(its).unwrap_or(calls.len()));
        calls.extend(frames.into_iter().map(|frame| self.script(frame)));
        calls
    }

    /// Names calls that no debug information names: in programs in Go without it, and in code that programs made, whose
    /// functions they list until they end.
    pub(super) fn name_calls(&mut self) {
        let mut sites = std::mem::take(&mut self.places.sites);
        let mut maps = FxHashMap::default();
        for site in sites.iter_mut().filter(|site| site.pc < SCRIPTS) {
            let mut modules = self.places.modules.iter();
            let here =
                |m: &&Module| m.of_program == site.program && (m.start..m.end).contains(&site.pc);
            let frame = match (modules.find(here), self.ran.get(site.program as usize)) {
                (Some(m), _) => self.stacks.go_place(&m.path, site.pc - m.start + m.offset),
                (None, Some(&process)) => {
                    let map = maps.entry(site.program);
                    let map = map.or_insert_with(|| PerfMap::read(process, self.began));
                    map.at(site.pc).cloned()
                }
                (None, None) => None,
            };
            if let Some(frame) = frame {
                site.pc = self.script(frame);
            }
        }
        self.places.sites = sites;
    }

    /// Keeps which calls ran, of each program whose code is known.
    pub(super) fn tell_what_ran(&mut self) {
        let places = &mut self.places;
        let programs: BTreeSet<u32> = places.modules.iter().map(|m| m.of_program).collect();
        let ran = programs.into_iter().map(|program| {
            let own = places.sites.iter().filter(|site| site.program == program);
            let calls = own.map(|site| site.pc).filter(|pc| *pc < SCRIPTS);
            Ran::from_calls(program, calls)
        });
        places.ran = Some(ran.collect()).filter(|_| cfg!(target_arch = "x86_64"));
    }

    /// The address that stands for a frame of an interpreter.
    fn script(&mut self, frame: ScriptFrame) -> u64 {
        let scripts = &mut self.places.scripts;
        SCRIPTS
            + *self.scripts.entry(frame).or_insert_with_key(|frame| {
                scripts.push(frame.clone());
                scripts.len() as u64 - 1
            })
    }

    pub(super) fn add_module(&mut self, process: &Process, pc: u64) {
        let holds = |m: &Module| m.of_program == process.command && (m.start..m.end).contains(&pc);
        if self.places.modules.iter().any(holds) {
            return;
        }
        if let Some(code) = code_at(&process.code, pc).filter(|code| code.is_of_file()) {
            self.places.modules.push(Module {
                path: code.path.clone(),
                start: code.start,
                end: code.end,
                offset: code.offset,
                first_site: 0,
                of_program: process.command,
                hash: String::new(),
            });
        }
    }
}

fn code_at(code: &[MappedCode], pc: u64) -> Option<&MappedCode> {
    code.iter().find(|c| (c.start..c.end).contains(&pc))
}
